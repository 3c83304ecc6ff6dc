"""What are the scores of a release on a split, with intervals and baselines, as a file for RESULTS.md?

Measures what `pvstream evaluate` measures, and adds the machine, commit and command.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.machine import provenance
from streams.releases.opening import load_release
from streams.settings import Settings
from training.evaluation.evaluate import evaluate


def main(
    task: str,
    data: Annotated[Path, typer.Option(help="folder with the corpora")],
    result: Annotated[Path, typer.Option("--json")],
    release: Annotated[Path | None, typer.Option(help="a directory; by default the bundled release")] = None,
    split: str | None = None,
) -> None:
    loaded = load_release(task, release, Settings(dtype="float32"))
    evaluation = evaluate(task, loaded.model, loaded.version, data, split).as_dict()
    rows = {
        name: {
            "value": value,
            "95 % interval": " to ".join(map(str, evaluation["intervals"].get(name, []))),
            "baseline": evaluation["baselines"].get(name),
            "what is counted": evaluation["definitions"][name],
            "what the baseline is": evaluation["baseline_definitions"].get(name),
        }
        for name, value in evaluation["scores"].items()
    }
    head = {k: evaluation[k] for k in ("task", "release", "data", "split", "records")}
    result.write_text(json.dumps(head | {"rows": rows} | provenance("evaluation"), indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    typer.run(main)
