"""How much of what a GPU can compute do the stages use, by number format, batch and feeding processes?

Ends within `--minutes`: every stage has its share of them, and what does not fit is named. `of_products`
compares with a large product of matrices in the same format. `--device cpu --small` shows that all of it
runs.
"""

from __future__ import annotations

import faulthandler
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
import typer
from rich.console import Console

from benchmarks.feeding import Child, Load, Taken, Turn, feed
from benchmarks.machine import provenance
from benchmarks.speed.__main__ import table
from benchmarks.speed.setup import QUICK, Amount, Setup
from models.types import JUDGE
from streams.rollout.loaded_judge import is_wanted
from streams.settings import Settings
from training.common.program import DeviceName, device_of
from training.common.program_help import run_program

FORMATS: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")
#: What is measured: the topic and the stage whose records it reads.
READ = {
    "ner": ("posts", "ner"),
    "normalization": ("posts", "normalization"),
    "relation": ("sentences", "relation"),
    JUDGE: ("posts", "normalization"),
}
#: Seconds after the end until the program is ended by force.
GRACE = 30.0


class Size(NamedTuple):
    """Amounts; `batches` are those of one process, `feeding` numbers of processes."""

    amount: Amount
    batches: Sequence[int]
    feeding: Sequence[int]
    product: int
    vectors: int
    seconds: float
    """most seconds of a turn, which ends with a batch"""


LARGE = Size(
    replace(QUICK, records={"posts": 891, "sentences": 2048, "questions": 1}),
    (64, 128, 256, 512, 1024, 2048),
    (2, 4, 8),
    8192,
    98_000,
    5.0,
)
SMALL = Size(QUICK, (8,), (2,), 512, 1000, 0.0)


def prepared(pipe: Connection, device: str, size: Size, data: Path) -> None:
    """The work of a Child: answers with operations a second of a product in each format, and searches of
    FAISS a second where it has the device; then with what each stage reads.
    """
    import faiss  # noqa: PLC0415

    found: dict[str, float] = {}
    for name in FORMATS:
        square = torch.rand(size.product, size.product, device=device).to(getattr(torch, name))
        found[name] = 2 * size.product**3 * _per_second(partial(_product, square))
    if device == "cpu" or getattr(faiss, "get_num_gpus", int)():
        from models.encoder.faiss_index import CosineIndex  # noqa: PLC0415

        rng = np.random.default_rng(7)
        index = CosineIndex(rng.standard_normal((size.vectors, 384), np.float32), device)
        queries = rng.standard_normal((256, 384), np.float32)
        found["FAISS"] = len(queries) * _per_second(partial(index.search, queries, 60))
    pipe.send(found)
    os.environ["PV_DEVICE"] = device
    pipe.send(Setup(data, size.amount).before)


def _product(square: torch.Tensor) -> float:
    return (square @ square)[0, 0].item()


def _per_second(work: Callable[[], Any], times: int = 5) -> float:
    work()
    began = time.perf_counter()
    for _ in range(times):
        work()
    return times / (time.perf_counter() - began)


class Run:
    """The rows, and what was left out with the reason."""

    def __init__(self, device: str, size: Size, end: float) -> None:
        """`end`: of time.monotonic."""
        self.device, self.size, self.end = device, size, end
        self.rows: dict[str, Any] = {}
        self.left_out = {"CUDA graphs": "not tried, because nearly every pass has other lengths"}
        self.stages = [stage for stage in READ if stage != JUDGE or is_wanted(Settings())]
        if JUDGE not in self.stages:
            self.left_out[JUDGE] = "its base is not installed, or PV_JUDGE is off"

    def measure(self, data: Path) -> None:
        """Every stage in every format, each in an equal share of the time that is left."""
        with Child(prepared, self.device, self.size, data) as child:
            limits, read = child.answer(self.end), child.answer(self.end)
        if "FAISS" in limits:
            self.rows[f"FAISS, {self.size.vectors:,} vectors"] = _row([], limits["FAISS"], None)
        else:
            self.left_out["FAISS"] = "the one that is installed has no GPU"
        groups = [(stage, form) for stage in self.stages for form in FORMATS]
        with ExitStack() as stack:
            children: list[Child] = []
            for i, (stage, form) in enumerate(groups):
                if not children:
                    children = [stack.enter_context(Child(feed)) for _ in range(max(self.size.feeding))]
                load = Load(ways=[([stage], read[READ[stage]])], device=self.device, dtype=form)
                now = time.monotonic()
                end = now + (self.end - now) / (len(groups) - i)
                if not self._group(f"{stage}, {form}", children, load, limits[form], end):
                    stack.close()  # which kills them
                    children = []

    def _group(self, name: str, children: Sequence[Child], load: Load, limit: float, end: float) -> bool:
        """One process with batches of every size, then several with the best size; whether all was done."""
        cells = [(1, batch) for batch in self.size.batches] + [(n, 0) for n in self.size.feeding]
        rates: dict[int, float] = {}
        try:
            for child in children:
                child.tell(load)
            operations, *_ = [child.answer(end) for child in children]
            while cells:
                n, size = cells[0]
                batch = size or max(rates, key=rates.__getitem__)
                seconds = min(self.size.seconds, (end - time.monotonic()) / len(cells) / 2)
                for child in children[:n]:
                    child.tell(Turn(batch, seconds=seconds))
                taken = [child.answer(end) for child in children[:n]]
                rate = sum(t.per_second for t in taken)
                rates.setdefault(batch, rate)
                self.rows[f"{name}, {n} x {batch}"] = _row(taken, rate, rate * operations / limit)
                del cells[0]
        except (TimeoutError, RuntimeError) as error:
            missing = ", ".join(f"{n} x {size or 'the best'}" for n, size in cells)
            self.left_out[name] = f"{missing}: {error}"
        return not cells


def _row(taken: Sequence[Taken], rate: float, share: float | None) -> dict[str, Any]:
    return {
        "records_per_second": round(rate, 1),
        "of_products": share and round(share, 4),
        "lock_share": round(statistics.mean(t.lock_share for t in taken), 3) if taken else None,
        "megabytes": round(sum(t.megabytes for t in taken)),
    }


def main(
    data: Annotated[
        Path, typer.Option(help="folder with streams/; if there is none, the bundled samples are used")
    ] = Path("data"),
    minutes: Annotated[float, typer.Option(min=0.1, help="when it ends")] = 10.0,
    device: Annotated[DeviceName, typer.Option(help="where the models compute")] = "cuda",
    small: Annotated[bool, typer.Option(help="few records and two processes")] = False,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    # Whatever else hangs: that would be this process, for the others are killed.
    faulthandler.dump_traceback_later(60 * minutes + GRACE, exit=True, file=2)
    place = device_of(device).type
    run = Run(place, SMALL if small else LARGE, time.monotonic() + 60 * minutes)
    try:
        run.measure(data)
    except (TimeoutError, RuntimeError) as error:
        run.left_out["all stages"] = str(error)
    finally:
        faulthandler.cancel_dump_traceback_later()
    gpu = torch.cuda.get_device_name() if place == "cuda" else "none"
    head = {"gpu": gpu, "torch": torch.__version__, "left_out": run.left_out}
    Console().print(table("rows are processes x batch", head | {"rows": run.rows}))
    if result is not None:
        result.write_text(json.dumps(head | provenance("gpu") | {"rows": run.rows}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    run_program(main)
