"""What does it bring and cost to take the names of drug classes for drugs (PV_DRUG_CLASSES)?

The ADE corpus marks named drugs only, so its scores count every relation of a class as false. Prints the
relations that are found in addition in its sentences without an event, to be read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.relation.false import predicted
from models.drugs.classes import bundled_classes
from models.relation.model import RelationModel
from models.releases.store import bundled, open_release
from training.common.program_help import run_program
from training.evaluation.evaluate import evaluate
from training.evaluation.relation import split_negatives

SCORES = ("re_corpus_f1", "ner_strict_macro_f1", "re_strict_macro_f1", "false_relations_per_1000")


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    split: Annotated[str, typer.Option(help="split that the bundled release was trained on")] = "ade_fold_1",
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    release = open_release(bundled("relation"))
    model = RelationModel.load(release)
    _, negatives = split_negatives(data / "ade", split)
    rows: dict[str, Any] = {}
    found = {}
    for name, classes in (("named drugs", None), ("classes too", bundled_classes())):
        model.drug_classes = classes
        scores = evaluate("relation", model, release.version, data, split).as_dict()["scores"]
        rows[name] = {score: scores[score] for score in SCORES}
        found[name] = list(predicted(model, negatives))
    known = {row for row, _ in found["named drugs"]}
    more = [(row, text) for row, text in found["classes too"] if row not in known]
    for (sentence, *places), text in more:
        d_start, d_end, e_start, e_end = places
        print(sentence, *places, text[d_start:d_end], text[e_start:e_end], text, sep="\t")
    about = {"release": release.version, "split": split, "relations in addition": len(more)}
    print_and_write(about | provenance("relation.classes") | {"rows": rows}, result)


if __name__ == "__main__":
    run_program(main)
