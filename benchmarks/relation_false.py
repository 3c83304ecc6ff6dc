"""What are the relations that count as false in sentences where the ADE corpus marks no adverse event?

Prints each that a release finds in the sentences never trained on, as a row to fill in, and counts by a
table of verdicts how many of them the sentence itself says or suspects: that nothing is marked in those
sentences is not to say that they speak of no adverse event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.machine import described
from models.relation.model import RelationModel
from models.releases.store import bundled, open_release
from models.tables import read_tsv
from training.common.corpora import GoldText
from training.evaluation.relation import split_negatives

READ = Path(__file__).parent / "results" / "relation_false_read.tsv"
COLUMNS = ("sentence", "drug_start", "drug_end", "effect_start", "effect_end", "said")
WHAT = (
    "said: the sentence says, or suspects, that the drug had the effect; an effect after or under the drug "
    "and one gone without it included. Not: treated with it, denied, ruled out, no drug, no whole effect. "
    "One reader, no clinician, who knew that the release had found them"
)
BATCH = 256
#: Sentence, and the ends of drug and effect in it.
Row = tuple[str, int, int, int, int]


def found_in(model: RelationModel, texts: Sequence[GoldText]) -> Iterator[tuple[Row, str]]:
    """Each relation, and its sentence."""
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        for text, tagged in zip(batch, model.predict([t.text for t in batch]), strict=True):
            for relation in tagged.relations:
                drug, effect = tagged.mentions[relation.head], tagged.mentions[relation.tail]
                yield (text.id, drug.start, drug.end, effect.start, effect.end), text.text


def verdicts(path: Path) -> dict[Row, bool]:
    """ValueError for a verdict that is neither 0 nor 1."""
    found: dict[Row, bool] = {}
    for sentence, *places, said in read_tsv(path, COLUMNS):
        if said not in ("0", "1"):
            raise ValueError(f"{path.name}, {sentence}: said is 0 or 1, not {said!r}")
        drug_start, drug_end, effect_start, effect_end = map(int, places)
        found[sentence, drug_start, drug_end, effect_start, effect_end] = said == "1"
    return found


def counted(rows: Iterable[Row], read: Mapping[Row, bool], sentences: int) -> dict[str, Any]:
    """Shares and rates; a relation without a verdict counts as not said."""
    found = list(rows)
    said = [row for row in found if read.get(row, False)]
    return {
        "sentences": sentences,
        "relations": len(found),
        "relations_read": sum(row in read for row in found),
        "relations_said": len(said),
        "sentences_with_a_relation": len({row[0] for row in found}),
        "sentences_with_one_said": len({row[0] for row in said}),
        "false_relations_per_1000": round(1000 * len(found) / sentences, 1),
        "false_relations_per_1000_not_said": round(1000 * (len(found) - len(said)) / sentences, 1),
    }


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/")],
    release: Annotated[
        Path | None, typer.Option(help="a relation release; without it the bundled one")
    ] = None,
    read: Annotated[Path, typer.Option(help="the table of verdicts")] = READ,
    split: Annotated[str, typer.Option(help="which the release was trained on")] = "ade_fold_1",
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    torch.set_num_threads(1)
    opened = open_release(release or bundled("relation"))
    _, texts = split_negatives(data / "ade", split)
    known = verdicts(read)
    rows = []
    typer.echo("\t".join([*COLUMNS, "drug", "effect", "text"]))
    for row, text in found_in(RelationModel.load(opened), texts):
        rows.append(row)
        said = str(int(known[row])) if row in known else "?"
        _, *ends = row
        typer.echo("\t".join([*map(str, row), said, text[ends[0] : ends[1]], text[ends[2] : ends[3]], text]))
    figures = {"what": WHAT, "release": opened.version} | counted(rows, known, len(texts))
    typer.echo(json.dumps(figures, indent=2), err=True)
    if result is not None:
        figures |= described("relation_false")
        result.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
