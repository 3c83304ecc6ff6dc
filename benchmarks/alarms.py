"""How many tweets that name a drug raise an alarm: with an event of the writer's, and without any?

A tweet raises an alarm when it has a mention labelled ADE or WITHDRAWAL that no rule flags as negated,
hypothetical or another person's. The tweets (TwiMed, Alvaro et al. 2017) are for development: their labels
are imperfect, so the figures compare two versions and are no score.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models.assertion.rules import assertion
from models.types import CODED_LABELS
from streams.agents import ner
from streams.records import Report, TaggedReport
from streams.releases.opening import load_release
from streams.settings import Settings

BATCH = 64
TWEETS = "tweets/twimed_dev.jsonl"
DEFINITIONS = {
    "alarmed": "share of the tweets with a mention labelled ADE or WITHDRAWAL that has no flag",
    "on a gold mention": "the same, the mention sharing a character with a gold one",
}


def alarms(report: TaggedReport) -> list[tuple[int, int]]:
    """The spans of the adverse events without a flag."""
    spans = [(m.start, m.end) for m in report.mentions if m.label in CODED_LABELS]
    asserted = [(span, assertion(report.text, *span)) for span in spans]
    return [s for s, a in asserted if not (a.negated or a.hypothetical or a.other_experiencer)]


def shares(rows: Sequence[dict[str, Any]], reports: Sequence[TaggedReport]) -> dict[str, dict[str, Any]]:
    """By kind of tweet: how many there are, and the shares of DEFINITIONS."""
    counts: dict[str, Counter[str]] = {}
    for row, report in zip(rows, reports, strict=True):
        found = alarms(report)
        own = counts.setdefault(row["kind"], Counter())
        own["tweets"] += 1
        own["alarmed"] += bool(found)
        own["on a gold mention"] += any(
            start < gold["end"] and gold["start"] < end for start, end in found for gold in row["mentions"]
        )
    return {
        kind: {"tweets": c["tweets"]} | {name: round(c[name] / c["tweets"], 3) for name in DEFINITIONS}
        for kind, c in sorted(counts.items())
    }


def main(
    data: Annotated[Path, typer.Option(help=f"folder with {TWEETS}")],
    release: Annotated[Path | None, typer.Option(help="a NER release; by default the bundled one")] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    loaded = load_release("ner", release, Settings(dtype="float32"))
    rows = [json.loads(line) for line in (data / TWEETS).read_text(encoding="utf-8").splitlines()]
    reports = [Report(id=str(i), text=row["text"]) for i, row in enumerate(rows)]
    tagged = [
        r for i in range(0, len(rows), BATCH) for r in ner.predict(loaded.model, reports[i : i + BATCH])
    ]
    figures: dict[str, Any] = {"release": loaded.version, "rows": shares(rows, tagged)}
    print_and_write(figures | {"definitions": DEFINITIONS} | provenance("alarms"), result)


if __name__ == "__main__":
    typer.run(main)
