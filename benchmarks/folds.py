"""How well are drugs, effects and their relations recognised over the folds of the ADE corpus, or over ten
parts that share no abstract?

`python -m benchmarks.folds relation` trains by the bundled recipe, and counts relations between the marked
mentions. The tagger's figures are of the corpus
alone: `python -m benchmarks.folds ner --recipe benchmarks/ner_folds.toml`. Each fold is trained and scored
separately and written to the file before the next one begins: a run that was stopped resumes with the missing
folds. A file with other settings is refused.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from benchmarks.machine import provenance, write_atomically
from training.common.precision import resolved
from training.common.program import Device, Run, device_of
from training.common.program_help import run_program
from training.evaluation.relation import FOLDS, GROUPS
from training.recipes.recipe import Recipe, changes_of, read_recipe
from training.recipes.stages import Place, Task, run_recipe, task_of

console = Console()
#: What is counted of a task, all by default: the bundled tagger knows the test sentences of nine folds.
COUNTED = {"relation": ("re_given_f1",)}
ALL = "1,2,3,4,5,6,7,8,9,10"


def fold_row(task: Task, recipe: Recipe, place: Place, run: Path | None) -> dict[str, Any]:
    """Trains on one fold; scores on its test part, each with its baseline, and costs."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        release = run_recipe(task, recipe, replace(place, output=Path(folder)), run)
        seconds = time.monotonic() - started
        # A tagger that learned from PsyTAR too has scores on both corpora.
        named = [s for s in release.manifest.scores if s.data.startswith("ADE")]
        scores = [s for s in named if s.name in COUNTED.get(release.task, (s.name,))]
        size = sum(f.size for f in release.manifest.files.values()) / 1e6
    return {
        "scores": {s.name: s.value for s in scores},
        "baselines": {s.name: s.baseline for s in scores},
        "records": {s.name: s.records for s in scores},
        "definitions": {s.name: s.definition for s in scores},
        "baseline_definitions": {s.name: s.baseline_definition for s in scores},
        "seconds": round(seconds),
        "megabytes": round(size, 1),
    }


def summary(folds: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Mean of each score and of its baseline and, with at least two folds, the score's standard deviation."""
    rows = list(folds.values())
    figures: dict[str, Any] = {"folds_done": len(rows)}
    for name in rows[0]["scores"]:
        values = [r["scores"][name] for r in rows]
        figures[name] = round(statistics.mean(values), 4)
        figures[f"{name}_baseline"] = round(statistics.mean(r["baselines"][name] for r in rows), 4)
        if len(values) > 1:
            figures[f"{name}_sd"] = round(statistics.stdev(values), 4)
    return figures | {"seconds_a_fold": round(statistics.mean(r["seconds"] for r in rows))}


def origin_of(recipe: Recipe, grouped: bool) -> dict[str, Any]:
    """What folds in one file must have in common."""
    runs = [run for stage in recipe.described()["stages"] for run in stage["runs"]]
    return {
        "settings": [{k: v for k, v in run.items() if k != "split"} for run in runs],
        "kind": "parts that share no abstract" if grouped else "the papers' folds",
    }


def stored_folds(file: Path, origin: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The folds in a result file; raises typer.BadParameter if they are of another origin."""
    if not file.exists():
        return {}
    stored = json.loads(file.read_bytes())
    for name, value in origin.items():
        if stored[name] != value:
            raise typer.BadParameter(f"{file} has folds with other {name}: {stored[name]}")
    common = {name: stored[name] for name in ("definitions", "baseline_definitions")}
    return {fold: row | common for fold, row in stored["folds"].items()}


def write_results(file: Path, origin: Mapping[str, Any], folds: Mapping[str, dict[str, Any]]) -> None:
    common = {k: next(iter(folds.values()))[k] for k in ("definitions", "baseline_definitions")}
    rows = {n: {k: v for k, v in row.items() if k not in common} for n, row in folds.items()}
    write_atomically(file, summary(folds) | provenance("folds") | common | {**origin, "folds": rows})


def main(
    task: Annotated[Literal["ner", "relation"], typer.Argument(help="the task")],
    data: Annotated[Path, typer.Option(exists=True, help="folder with ade/")],
    result: Annotated[Path, typer.Option("--json", help="result file; a run resumes where it ends")],
    recipe: Annotated[Path | None, typer.Option(exists=True, help="file with what differs")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="a setting of every stage"),
    ] = None,
    folds: Annotated[str, typer.Option(help="their numbers, with commas")] = ALL,
    grouped: Annotated[
        bool, typer.Option(help="use parts that share no abstract instead of the papers' folds")
    ] = False,
    run: Run = None,
    device: Device = "auto",
) -> None:
    if not set(folds.split(",")) <= set(ALL.split(",")):
        raise typer.BadParameter(f"--folds {folds}: numbers from 1 to 10 are wanted")
    place, of_task = Place(data, result.parent, device_of(device)), task_of(task)

    def of_split(split: str) -> Recipe:
        given = {"precision": resolved("auto", place.device)} | changes_of(changes or [])
        return read_recipe(task, of_task.settings, recipe, given | {"split": split})

    origin = origin_of(of_split(f"{FOLDS}1"), grouped)
    done = stored_folds(result, origin)
    for fold in folds.split(","):
        split = f"{GROUPS if grouped else FOLDS}{fold}"
        if fold not in done:
            done[fold] = row = fold_row(of_task, of_split(split), place, run / split if run else None)
            write_results(result, origin, done)
            console.print(f"fold {fold}: {row['scores']} after {row['seconds']} s")
    console.print(summary(done))


if __name__ == "__main__":
    run_program(main)
