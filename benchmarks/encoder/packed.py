"""How much does the packed encoder save against that of transformers, in time, in memory and at the start?

Speeds: the bundled samples through the base model in batches of 64, the encoders in turn in each of several
rounds; the first round is not counted. Seconds are medians, of the processor and of the wall. Starts: a
process of its own loads the releases of the five stages in 32 bits, and checks each with its canary inputs.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from models.memory import peak_bytes
from training.common.program_help import run_program

FORMATS = ("float32", "bfloat16")
BATCH = 64


def speeds(rounds: int, threads: int) -> dict[str, dict[str, Any]]:
    """Median seconds of each encoder and number format for all samples."""
    import torch  # noqa: PLC0415  a child process measures its import

    from models.encoder.model import Encoder  # noqa: PLC0415
    from streams.cli.demo.run import samples  # noqa: PLC0415

    torch.set_num_threads(threads)
    lines = [line for path in samples().values() for line in path.read_bytes().splitlines()]
    encoders = {
        f"{name} {dtype}": load("mini", dtype=getattr(torch, dtype))
        for dtype in FORMATS
        for name, load in (("transformers", Encoder.load), ("packed", Encoder.for_inference))
    }
    tokenizer = encoders["packed float32"].tokenizer
    pieces = [ids[:126] for ids in tokenizer([orjson.loads(line)["text"] for line in lines])["input_ids"]]
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in encoders}
    for _ in range(rounds + 1):
        for name, encoder in encoders.items():
            started, used = time.perf_counter(), time.process_time()
            for start in range(0, len(pieces), BATCH):
                encoder.pool(pieces[start : start + BATCH])
            measured[name].append((time.perf_counter() - started, time.process_time() - used))
    rows = {}
    base = statistics.median(cpu for _, cpu in measured["transformers float32"][1:])
    for name, seconds in measured.items():
        wall, cpu = (statistics.median(column) for column in zip(*seconds[1:], strict=True))
        rows[name] = {"wall_seconds": wall, "cpu_seconds": cpu, "speed_to_transformers_float32": base / cpu}
    return {name: {k: round(v, 3) for k, v in row.items()} for name, row in rows.items()}


def start(packed: bool) -> dict[str, float]:
    """In a child process: processor seconds and memory of loading the releases of the five stages."""
    from models.encoder import model  # noqa: PLC0415
    from models.releases.loading import load  # noqa: PLC0415
    from models.releases.store import bundled, open_release  # noqa: PLC0415
    from models.types import TASKS  # noqa: PLC0415

    if not packed:
        model.load_wordpiece = lambda folder: None
    releases = [load(open_release(bundled(task)), dtype="float32") for task in TASKS]
    assert len(releases) == len(TASKS)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    peak = peak_bytes()
    return {
        "cpu_seconds": round(time.process_time(), 2),
        "resident_mb": round(resident / 1e6),
        "peak_mb": round(peak / 1e6),
    }


def main(
    rounds: Annotated[int, typer.Option(help="number of rounds, of which the first is not counted")] = 4,
    threads: Annotated[int, typer.Option(help="threads of torch")] = 1,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
    child: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    if child:
        print(json.dumps(start(child == "packed")))
        return
    figures: dict[str, Any] = {"rounds": rounds, "threads": threads}
    for name in ("transformers", "packed"):
        command = [sys.executable, "-m", "benchmarks.encoder.packed", "--child", name]
        process = subprocess.run(command, capture_output=True, check=True)
        figures |= {f"start_{name}_{key}": value for key, value in json.loads(process.stdout).items()}
    print_and_write(figures | provenance("encoder.packed") | {"rows": speeds(rounds, threads)}, result)


if __name__ == "__main__":
    run_program(main)
