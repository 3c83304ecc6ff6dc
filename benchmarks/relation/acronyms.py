"""What does it change that acronyms of effects and drugs are read as their long forms?

The held-out clinical sentences of the teaching corpus, and with `--data` the test part of fold 1 of the ADE
corpus, read as they are written and as records, with the long forms that the bundled acronym release gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.relation.written import PARTS, figures
from models.relation.reading import naming
from models.types import Expansion, Mention, Relation, TaggedText
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.relation import Corpus, read
from training.relation.written import held_out

#: The fold that the bundled release was not trained on.
FOLD = "ade_fold_1"
BATCH = 64


class AsRecords:
    """A relation model that reads texts with the decided long forms of an acronym model."""

    def __init__(self, relation: Any, acronym: Any) -> None:
        self.relation = relation
        self.acronym = acronym
        self.with_names = 0
        """texts with a long form that names an effect or a drug"""

    def predict(self, texts: Sequence[str]) -> list[TaggedText]:
        found: list[TaggedText] = []
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            expansions: list[list[Expansion]] = [
                [e for e in own if not e.candidates] for own in self.acronym.predict(batch)
            ]
            self.with_names += sum(bool(naming(own)) for own in expansions)
            found += self.relation.predict(batch, expansions)
        return found

    def relate(self, texts: Sequence[str], mentions: Sequence[Sequence[Mention]]) -> list[list[Relation]]:
        related: list[list[Relation]] = self.relation.relate(texts, mentions)
        return related


def compared(relation: Any, acronym: Any, data: Corpus) -> dict[str, Any]:
    """The figures of both ways to read, and how many texts have such long forms."""
    as_records = AsRecords(relation, acronym)
    rows = {"as written": figures(relation, data), "with long forms": figures(as_records, data)}
    n = len(data.test) + len(data.negatives)
    return {"texts": n, "texts with such long forms": as_records.with_names, **rows}


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with ade/; without it only what was written")
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="a relation release; by default the bundled one")
    ] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    parts = {name: held_out(batches) for name, batches in PARTS.items()}
    if data is not None:
        parts[FOLD] = read(data, FOLD, 0)
    relation, acronym = (
        load_release(task, path, Settings(dtype="float32"))
        for task, path in (("relation", release), ("acronym", None))
    )
    rows = {name: compared(relation.model, acronym.model, part) for name, part in parts.items()}
    releases = {"relation": relation.version, "acronym": acronym.version}
    print_and_write({"releases": releases} | {"rows": rows} | provenance("relation.acronyms"), result)


if __name__ == "__main__":
    run_program(main)
