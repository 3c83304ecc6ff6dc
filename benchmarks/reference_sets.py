"""How do the criteria do on OMOP's and EU-ADR's reference sets, in a store of real texts of patients?

The store has Druglib's reviews, PsyTAR's posts and tweets that name a drug, read by the bundled releases with
what their sources state. `pvstream reference` counts the same in a store of yours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from benchmarks.machine import print_and_write, provenance
from streams.library import load
from streams.order import revision_of
from streams.records import Origin, Report
from streams.settings import Settings
from streams.signals.population import Population
from streams.signals.reference import DEFINITIONS, SETS, bundled, compare
from streams.store.changes import Read, fold
from streams.store.open_database import open_database
from streams.store.repeats import join_repeats
from training.common.corpora import json_lines
from training.common.program_help import run_program

BATCH, LEAST = 256, (1, 3)
FILES = ("reviews/druglib.jsonl", "streams/posts.jsonl", "tweets/diego_dev.jsonl")


def reports(data: Path) -> Iterator[Report]:
    """The texts of all files, those of a review in one."""
    for name in FILES:
        for _, line in json_lines(data / name):
            row = json.loads(line)
            told = [row.get(part, "") for part in ("side_effects_text", "comments", "benefits", "text")]
            drug = (row["drug"],) if row.get("drug") else ()
            text = "\n".join(t for t in told if t.strip())
            if text:
                yield Report(
                    id=f"{name}/{row['id']}", text=text, drug=drug, indication=row.get("condition") or None
                )


def main(
    data: Annotated[Path, typer.Option(exists=True, help="folder of the corpora")],
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    annotator, now = load("posts"), datetime.now(UTC)
    texts = list(reports(data))
    with TemporaryDirectory() as folder:
        settings = Settings(database=str(Path(folder) / "events.duckdb"))
        database = open_database(settings, write=True)
        for first in range(0, len(texts), BATCH):
            made = annotator.predict(texts[first : first + BATCH])
            placed = [
                replace(r, origin=Origin("posts", 0, first + i), received_at=now, source="posts")
                for i, r in enumerate(made)
            ]
            changes = fold([Read(r.id, revision_of(r), r) for r in placed], {})
            join_repeats(database, changes)
            database.write(changes)
        found = [
            {"set": name} | compare(database, bundled(name), Population(), least)
            for name in SETS for least in LEAST
        ]  # fmt: skip
        (numbers,) = database.query("SELECT count(DISTINCT report_id), count(*) FROM pairs WHERE affirmed")[1]
        database.close()
    head = {"texts": len(texts), "reports with a pair": numbers[0], "pairs": numbers[1]}
    print_and_write(
        {**head, "sets": found, "definitions": DEFINITIONS, **provenance("reference_sets")}, result
    )


if __name__ == "__main__":
    run_program(main)
