"""Do the packed encoder and its number formats change what the bundled releases answer?

Each task is evaluated on its first split three times: with the encoder of transformers in 32 bits, with the
packed one in 32 bits, and with the packed one in 16 bits. A record differs if a figure that is counted of it
does by more than TOLERANCE: some are scores and not decisions.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.machine import provenance, write_atomically
from models.encoder.model import Encoder
from models.releases.manifest import ReleaseError
from streams.releases.scoring import score
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.evaluate import PRIMARY, SPLITS, Evaluation

TOLERANCE = 0.02
TASKS = ("ner", "normalization", "posts", "relation", "acronym", "summarization")


def evaluated(task: str, data: Path, limit: int, dtype: Any, packed: bool) -> Evaluation | None:
    """None where the release fails its canary check in that format."""
    other = nullcontext() if packed else patch.object(Encoder, "for_inference", Encoder.load)
    try:
        with other:
            return score(task, {}, data, Settings(dtype=dtype), limit=limit)
    except ReleaseError:
        return None


def row(task: str, data: Path, limit: int) -> dict[str, Any]:
    """The primary score of a task in the three ways, and how many records differ from the first."""
    first = evaluated(task, data, limit, "float32", packed=False)
    assert first is not None, f"the bundled release of {task} fails its canary check"
    name = PRIMARY[task]
    figures: dict[str, Any] = {
        "split": SPLITS[task][0],
        "records": first.records,
        "score": name,
        "transformers": round(first.scores[name], 4),
    }
    for dtype in ("float32", "bfloat16"):
        own = evaluated(task, data, limit, dtype, packed=True)
        figures[dtype] = None if own is None else round(own.scores[name], 4)
        if own is not None:
            moved = np.abs(own.counts - first.counts).max(axis=1) > TOLERANCE
            figures[f"{dtype}_records_that_differ"] = int(moved.sum())
    return figures


def main(
    data: Annotated[Path, typer.Option(help="folder with the corpora")],
    limit: Annotated[int, typer.Option(help="maximum records of each task; 0: all")] = 400,
    tasks: Annotated[str, typer.Option(help="tasks, separated by commas")] = ",".join(TASKS),
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    # A result that is there keeps the rows of the tasks that are not measured now.
    rows = json.loads(result.read_bytes())["rows"] if result and result.exists() else {}
    for task in tasks.split(","):
        rows[task] = row(task, data, limit)
        print(task, rows[task], flush=True)
        if result is not None:
            write_atomically(result, {"limit": limit, **provenance("encoder.number_formats"), "rows": rows})


if __name__ == "__main__":
    run_program(main)
