"""The neighbour searches and the stages on a GPU, against the same machine's processor: `python -m
benchmarks.gpu`.

Writes gpu_search.json and gpu_stages.json into the folder of `--json`, one after the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import faiss
import torch
import typer

from benchmarks.gpu.search import search
from benchmarks.gpu.stages import stages
from benchmarks.machine import print_and_write, provenance
from benchmarks.speed.setup import FULL, QUICK, Setup
from streams.agents.pipeline import STAGES
from streams.settings import Settings
from training.common.program import DeviceName, device_of
from training.common.program_help import run_program

NAMES = [stage.name for stage in STAGES]
SIZES, REPEATS = (10_000, 1_000_000), 3


def main(
    data: Annotated[
        Path, typer.Option(help="folder with streams/; if there is none, the bundled samples are used")
    ] = Path("data"),
    parts: Annotated[str, typer.Option(help="search, stages, or both with a comma")] = "search,stages",
    only: Annotated[
        str, typer.Option("--stages", help="with a comma; all but normalization do without FAISS on the GPU")
    ] = ",".join(NAMES),
    device: Annotated[DeviceName, typer.Option(help="what is compared with the processor")] = "cuda",
    quick: Annotated[bool, typer.Option(help="few records, vectors and rounds")] = False,
    result: Annotated[Path | None, typer.Option("--json", help="folder for the results")] = None,
) -> None:
    place = device_of(device).type
    if Settings().device != "cpu":
        raise typer.BadParameter("unset PV_DEVICE: what is compared with must be on the processor")
    names = only.split(",")
    if unknown := set(names) - set(NAMES):
        raise typer.BadParameter(f"unknown stages {sorted(unknown)}")
    searching = "search" in parts.split(",") or "normalization" in names
    if searching and place == "cuda" and not getattr(faiss, "get_num_gpus", int)():
        raise typer.BadParameter("FAISS has no GPU here: install the extra gpu in the place of cpu")
    sizes, repeats = ((1000, 2000), 1) if quick else (SIZES, REPEATS)
    programs: dict[str, Any] = {
        "search": lambda: search(sizes, repeats, ("cpu", place)),
        "stages": lambda: stages(Setup(data, QUICK if quick else FULL), place, names),
    }
    if unknown := set(parts.split(",")) - programs.keys():
        raise typer.BadParameter(f"unknown parts {sorted(unknown)}; there are {', '.join(programs)}")
    if result is not None:
        result.mkdir(parents=True, exist_ok=True)
    gpu = torch.cuda.get_device_name() if place == "cuda" else "none"
    for name in parts.split(","):
        figures = programs[name]()
        rows = figures.pop("rows")
        machine = provenance("gpu") | {"gpu": gpu, "torch": torch.__version__}
        path = result / f"gpu_{name}.json" if result is not None else None
        print_and_write(figures | machine | {"rows": rows}, path)


if __name__ == "__main__":
    run_program(main)
