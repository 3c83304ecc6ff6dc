"""Does a text get the same numbers in any batch, and what does that cost? Which number format is faster here?

Each row is a process of its own, because MKL reads its mode once: 32 bits with and without the strict mode,
and bfloat16. The same texts are embedded in batches of 1, 7 and 64; `moved` counts those whose vector differs
in any bit from the one that it gets among all. Speeds are medians in batches of 64, as ratios to 32 bits
without the mode.
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

from benchmarks.machine import described

ROWS = {
    "float32": ("float32", ""),
    "float32_strict": ("float32", "AUTO,STRICT"),
    "bfloat16": ("bfloat16", ""),
}
ROUNDS = 5


def measure(dtype: str) -> dict[str, Any]:
    """Runs in the child process, with the mode that its environment names."""
    import torch  # noqa: PLC0415  after the environment is set

    from models.encoder.model import Encoder  # noqa: PLC0415
    from streams.cli.demo import samples  # noqa: PLC0415

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    texts = [
        orjson.loads(line)["text"] for path in samples().values() for line in path.read_bytes().splitlines()
    ]
    encoder = Encoder.load("mini", dtype=getattr(torch, dtype))
    expected = encoder.embed(texts)
    moved = set()
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
        # Set, be it to nothing: else models/__init__ asks for the strict mode.
        done = subprocess.run(command, env=os.environ | {"MKL_CBWR": mode}, capture_output=True, check=True)
        row = json.loads(done.stdout)
        figures["texts"] = row.pop("texts")
        figures |= {f"{name}_{key}": value for key, value in row.items()}
    base = figures["float32_texts_per_second"]
    for name in ("float32_strict", "bfloat16"):
        figures[f"{name}_to_float32"] = round(figures[f"{name}_texts_per_second"] / base, 3)
    figures |= described("encoder")
    print(json.dumps(figures, indent=2))
    if result is not None:
        result.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
