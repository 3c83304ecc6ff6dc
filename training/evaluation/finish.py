"""The end of every training program: what is printed of a release, and its way to the broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from models.releases.manifest import Release, Score
from training.evaluation.evaluate import PRIMARY

OFFERED = Annotated[
    bool, typer.Option("--announce", help="announce the release on PV_BROKER too, if it passes the gate")
]


def finish(release: Release, data: Path | None, offered: bool) -> None:
    """Prints the scores, warns where the release is worse than a baseline, and offers it where asked for."""
    print_scores(Console(), release)
    for warning in below_baselines(release):
        Console(stderr=True).print(warning, style="bold red", highlight=False, markup=False, soft_wrap=True)
    if offered:
        offer(release, data)


def print_scores(console: Console, release: Release) -> None:
    """Every score of a release beside its baseline and its definition."""
    for row in release.manifest.scores:
        console.print(
            f"{row.data} (n {row.records}): [bold]{row.name} {row.value}[/], baseline {row.baseline} "
            f"({row.baseline_definition}) - {row.definition}",
            highlight=False,
            soft_wrap=True,
        )
    console.print(f"release {release.version} in {release.path}", highlight=False, soft_wrap=True)


def below_baselines(release: Release) -> Iterator[str]:
    """A line for each set of data on which the score that decides is below its baseline."""
    task = release.manifest.task
    for row in release.manifest.scores:
        if row.name == PRIMARY[task] and _is_below(row):
            yield (
                f"warning: this {task} release is worse than the baseline on {row.data}: "
                f"{row.name} {row.value}, baseline {row.baseline} ({row.baseline_definition})"
            )


def _is_below(row: Score) -> bool:
    return row.baseline is not None and row.value < row.baseline


def offer(release: Release, data: Path | None) -> None:
    """Runs `pvstream announce` on a release, with its gate, in a process of its own (training does not import
    Kafka clients). Raises typer.Exit with the command's exit code where it fails.
    """
    command = [sys.executable, "-m", "streams", "announce", str(release.path)]
    done = subprocess.run([*command, *(["--data", str(data)] if data else [])], check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
