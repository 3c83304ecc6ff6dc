"""Which relations count as false in sentences where the ADE corpus marks no adverse event?

Prints each relation that a release predicts in the sentences that were not trained on, as a row to fill in,
and counts with a table of verdicts how many of them the sentence states or suspects: a sentence without
annotations may still report an adverse event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.machine import provenance
from models.relation.model import RelationModel
from models.releases.store import bundled, open_release
from models.tables import read_tsv
from training.common.corpora import GoldText
from training.common.program_help import run_program
from training.evaluation.relation import split_negatives

READ = Path(__file__).parents[1] / "results/relation/relation_false_read.tsv"
COLUMNS = ("sentence", "drug_start", "drug_end", "effect_start", "effect_end", "said")
WHAT = (
    "said: the sentence says, or suspects, that the drug had the effect; an effect after or under the drug "
    "and one gone without it included. Not: treated with it, denied, ruled out, no drug, no whole effect. "
    "One reader, no clinician, who knew that the release had found them"
)
BATCH = 256
#: Sentence id, and start and end of the drug and of the effect in the sentence.
Row = tuple[str, int, int, int, int]


def predicted(model: RelationModel, texts: Sequence[GoldText]) -> Iterator[tuple[Row, str]]:
    """Each predicted relation, with the text of its sentence."""
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        for text, tagged in zip(batch, model.predict([t.text for t in batch]), strict=True):
            for relation in tagged.relations:
                drug, effect = tagged.mentions[relation.head], tagged.mentions[relation.tail]
                yield (text.id, drug.start, drug.end, effect.start, effect.end), text.text


def read_verdicts(path: Path) -> dict[Row, bool]:
    """Relation to whether the sentence states it; raises ValueError for a verdict that is not 0 or 1."""
    verdicts: dict[Row, bool] = {}
    for sentence, *places, said in read_tsv(path, COLUMNS):
        if said not in ("0", "1"):
            raise ValueError(f"{path.name}, {sentence}: said is 0 or 1, not {said!r}")
        drug_start, drug_end, effect_start, effect_end = map(int, places)
        verdicts[sentence, drug_start, drug_end, effect_start, effect_end] = said == "1"
    return verdicts


def count(rows: Iterable[Row], verdicts: Mapping[Row, bool], sentences: int) -> dict[str, Any]:
    """Counts and rates of the predicted relations; one without a verdict counts as not stated."""
    relations = list(rows)
    stated = [row for row in relations if verdicts.get(row, False)]
    return {
        "sentences": sentences,
        "relations": len(relations),
        "relations_read": sum(row in verdicts for row in relations),
        "relations_said": len(stated),
        "sentences_with_a_relation": len({row[0] for row in relations}),
        "sentences_with_one_said": len({row[0] for row in stated}),
        "false_relations_per_1000": round(1000 * len(relations) / sentences, 1),
        "false_relations_per_1000_not_said": round(1000 * (len(relations) - len(stated)) / sentences, 1),
    }


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    release: Annotated[
        Path | None, typer.Option(help="a relation release; by default the bundled one")
    ] = None,
    read: Annotated[Path, typer.Option(help="the table of verdicts")] = READ,
    split: Annotated[str, typer.Option(help="split that the release was trained on")] = "ade_fold_1",
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    torch.set_num_threads(1)
    opened = open_release(release or bundled("relation"))
    _, texts = split_negatives(data / "ade", split)
    verdicts = read_verdicts(read)
    rows = []
    typer.echo("\t".join([*COLUMNS, "drug", "effect", "text"]))
    for row, text in predicted(RelationModel.load(opened), texts):
        rows.append(row)
        verdict = str(int(verdicts[row])) if row in verdicts else "?"
        _, drug_start, drug_end, effect_start, effect_end = row
        spans = [text[drug_start:drug_end], text[effect_start:effect_end]]
        typer.echo("\t".join([*map(str, row), verdict, *spans, text]))
    figures = {"what": WHAT, "release": opened.version} | count(rows, verdicts, len(texts))
    typer.echo(json.dumps(figures, indent=2), err=True)
    if result is not None:
        figures |= provenance("relation.false")
        result.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
