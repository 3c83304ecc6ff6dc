"""How many tweets that name a drug raise an alarm: with an event of the writer's, and without any?

The tweets (TwiMed, Alvaro et al. 2017) are for development: their labels are imperfect, so the figures
compare two versions and are no score. Tweets that speak of an effect in general are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from streams.rollout.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.alarms import DEFINITIONS, Post, alarm_curve

TWEETS = "tweets/twimed_dev.jsonl"


def posts(lines: str) -> list[Post]:
    """Tweets with an event of the writer's, and those without any, from JSON lines."""
    rows = [json.loads(line) for line in lines.splitlines()]
    return [
        Post(
            row["text"],
            tuple((m["start"], m["end"]) for m in row["mentions"] if m["label"] != "DRUG"),
            row["kind"] == "own_event",
        )
        for row in rows
        if row["kind"] in {"own_event", "none"}
    ]


def main(
    data: Annotated[Path, typer.Option(exists=True, help=f"folder with {TWEETS}")],
    release: Annotated[
        Path | None, typer.Option(exists=True, help="a NER release; by default the bundled one")
    ] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    loaded = load_release("ner", release, Settings(dtype="float32"))
    tweets = posts((data / TWEETS).read_text(encoding="utf-8"))
    model: Any = loaded.model
    figures = {"release": loaded.version} | alarm_curve(model, tweets)
    print_and_write(figures | {"definitions": DEFINITIONS} | provenance("events.alarms"), result)


if __name__ == "__main__":
    run_program(main)
