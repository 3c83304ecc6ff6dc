"""What are the scores of a release on a split, with intervals and baselines, as a file for RESULTS.md?

Measures what `pvstream evaluate` measures, and adds the machine, commit and command.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.machine import provenance
from streams.cli.arguments import check_task, chosen_releases
from streams.rollout.scoring import score
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.evaluate import POSTS, SPLITS


def main(
    task: Annotated[str, typer.Argument(help="the task of a stage, posts or idiom")],
    result: Annotated[Path, typer.Option("--json", help="write the figures here")],
    data: Annotated[Path | None, typer.Option(exists=True, help="folder with the corpora")] = None,
    release: Annotated[
        list[str] | None,
        typer.Option(help="a directory; by default the bundled one; for posts TASK=DIRECTORY, repeatable"),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="part of the data; by default the held-out set of the task")
    ] = None,
) -> None:
    check_task(task, tuple(SPLITS))
    chosen: dict[str, str | Path] = {task: Path(release[0])} if release else {}
    if task == POSTS:
        chosen = chosen_releases(release or ())
    measured = score(task, chosen, data, Settings(dtype="float32"), split=split)
    evaluation = measured.as_dict()
    rows = {
        name: {
            "value": value,
            "95 % interval": " to ".join(map(str, evaluation["intervals"].get(name, []))),
            "baseline": evaluation["baselines"].get(name),
            "records": measured.part(name).records,
            "what is counted": evaluation["definitions"][name],
            "what the baseline is": evaluation["baseline_definitions"].get(name),
        }
        for name, value in evaluation["scores"].items()
    }
    head = {k: evaluation[k] for k in ("task", "release", "data", "split", "records")}
    result.write_text(json.dumps(head | {"rows": rows} | provenance("evaluation"), indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    run_program(main)
