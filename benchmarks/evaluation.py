"""What does a release score on a split, with intervals and baselines, as a file for RESULTS.md?

The measurement is that of `pvstream evaluate`; beside it stands what it was made with.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.machine import described
from streams.releases.opening import load_release
from streams.settings import Settings
from training.evaluation.evaluate import evaluate


def main(
    task: str,
    data: Annotated[Path, typer.Option(help="folder with the corpora")],
    result: Annotated[Path, typer.Option("--json")],
    release: Annotated[Path | None, typer.Option(help="a directory; without it, the bundled one")] = None,
    split: str | None = None,
) -> None:
    loaded = load_release(task, release, Settings(dtype="float32"))
    found = evaluate(task, loaded.model, loaded.version, data, split).as_dict()
    rows = {
        name: {
            "value": value,
            "95 % interval": " to ".join(map(str, found["intervals"].get(name, []))),
            "baseline": found["baselines"].get(name),
            "what is counted": found["definitions"][name],
            "what the baseline is": found["baseline_definitions"].get(name),
        }
        for name, value in found["scores"].items()
    }
    kept = {k: found[k] for k in ("task", "release", "data", "split", "records")}
    result.write_text(json.dumps(kept | {"rows": rows} | described("evaluation"), indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    typer.run(main)
