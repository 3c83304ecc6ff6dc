"""Is the encoder batch-invariant, and at what cost? Which number format is faster on this machine?

Each row is measured in a process of its own, because MKL reads its mode only once: float32 with and without
the strict mode, and bfloat16. The same texts are embedded in batches of 1, 7 and 64; `moved` counts the texts
whose vector differs in any bit from the vector computed with all texts in one call. Speeds are medians in
batches of 64, as ratios to float32 without the strict mode.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from training.common.program_help import run_program

ROWS = {
    "float32": ("float32", ""),
    "float32_strict": ("float32", "AUTO,STRICT"),
    "bfloat16": ("bfloat16", ""),
}
ROUNDS = 5


def measure(dtype: str) -> dict[str, Any]:
    """Measures one row, in a child process with the MKL mode of its environment."""
    import torch  # noqa: PLC0415  imported only once the environment is set

    from models.encoder.model import Encoder  # noqa: PLC0415
    from streams.cli.demo.run import samples  # noqa: PLC0415

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    texts = [
        orjson.loads(line)["text"] for path in samples().values() for line in path.read_bytes().splitlines()
    ]
    encoder = Encoder.for_inference("mini", dtype=getattr(torch, dtype))
    expected = encoder.embed(texts)
    moved = set()  # indices of texts whose vector changed
    for size in (1, 7, 64):
        for start in range(0, len(texts), size):
            rows = encoder.embed(texts[start : start + size])
            moved |= {start + i for i, row in enumerate(rows) if not torch.equal(row, expected[start + i])}
    speeds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for start in range(0, len(texts), 64):
            encoder.embed(texts[start : start + 64])
        speeds.append(len(texts) / (time.perf_counter() - started))
    return {"texts": len(texts), "moved": len(moved), "texts_per_second": round(statistics.median(speeds), 1)}


def main(
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
    child: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    if child:
        print(json.dumps(measure(child)))
        return
    figures: dict[str, Any] = {}
    for name, (dtype, mode) in ROWS.items():
        command = [sys.executable, "-m", "benchmarks.encoder", "--child", dtype]
        # Set even if empty: otherwise models/__init__ sets the strict mode.
        process = subprocess.run(
            command, env=os.environ | {"MKL_CBWR": mode}, capture_output=True, check=True
        )
        row = json.loads(process.stdout)
        figures["texts"] = row.pop("texts")
        figures |= {f"{name}_{key}": value for key, value in row.items()}
    base = figures["float32_texts_per_second"]
    for name in ("float32_strict", "bfloat16"):
        figures[f"{name}_to_float32"] = round(figures[f"{name}_texts_per_second"] / base, 3)
    print_and_write(figures | provenance("encoder"), result)


if __name__ == "__main__":
    run_program(main)
