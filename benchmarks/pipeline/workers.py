"""How much faster are several inference workers of one thread than one worker of several threads?

Both run the same records through the same stages and models in one process without a broker, one after the
other and repeatedly; the median of the ratios of two neighbouring runs is the result. `--neighbour` computes
beside them.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import torch
import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.pipeline.__main__ import inputs
from models.releases.loading import Loaded
from streams.agents.pipeline import STAGES
from streams.inference import InferenceWorkers, processors
from streams.records import Headers, Inbound
from streams.releases.handle import load_task
from streams.replay.run import stages_from
from streams.settings import Settings
from streams.stage import Processed, Stage, run_stage
from streams.topics import by_name

T = TypeVar("T")


class MemoryPorts:
    """The ports of a stage over inference workers: outputs are kept in memory and confirmed at once."""

    keep_text = True

    def __init__(self, loaded: Loaded, inference: InferenceWorkers, settings: Settings) -> None:
        self.workers, self.batch_characters = inference.workers, settings.batch_characters
        self.max_output_bytes = settings.max_output_bytes
        self.sent: list[tuple[str, bytes | None, bytes | None]] = []
        self._loaded, self._inference = loaded, inference

    def snapshot(self) -> Loaded:
        return self._loaded

    async def infer(self, work: Callable[[], T], batch: Sequence[Inbound]) -> T:
        return await self._inference.run(work)

    async def owns(self, batch: Sequence[Inbound]) -> bool:
        return True

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[Any]:
        self.sent.append((topic, key, value))
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        confirmed.set_result(None)
        return confirmed

    async def ack(self, record: Inbound) -> None:
        """Nothing is read again."""

    def observe(self, done: Sequence[Processed]) -> None:
        """Nothing observes a measurement."""


async def run_stages(
    records: Sequence[Inbound],
    stages: Sequence[Stage[Any, Any]],
    models: dict[str, Loaded],
    inference: InferenceWorkers,
    settings: Settings,
) -> list[Inbound]:
    """The records after the stages, which run one after the other."""
    for stage in stages:
        ports = MemoryPorts(models[stage.name], inference, settings)

        async def batches(own: Sequence[Inbound] = records) -> AsyncIterator[Sequence[Inbound]]:
            for i in range(0, len(own), settings.batch):
                yield own[i : i + settings.batch]

        await run_stage(stage, batches(), ports)
        records = [Inbound(t, 0, i, key, value, 0.0) for i, (t, key, value) in enumerate(ports.sent)]
    return list(records)


def measured(
    records: dict[str, list[Inbound]], models: dict[str, Loaded], workers: int, threads: int
) -> dict[str, Any]:
    """Wall and processor seconds of one run, and a digest of everything that came out."""
    inference = InferenceWorkers(workers, threads)
    digest = hashlib.sha256()
    cpu, started = time.process_time(), time.perf_counter()
    try:
        for topic, own in records.items():
            chain = stages_from(by_name(topic))
            for out in asyncio.run(run_stages(own, chain, models, inference, Settings())):
                digest.update(out.value or b"")
    finally:
        inference.close()
    wall = time.perf_counter() - started
    return {"seconds": wall, "cpu_seconds": time.process_time() - cpu, "digest": digest.hexdigest()}


def _compute() -> None:
    torch.set_num_threads(1)
    square = torch.rand(512, 512)
    while True:
        square = (square @ square).sigmoid()


@contextmanager
def neighbour(wanted: bool) -> Iterator[None]:
    """Another process that computes in one thread during the block."""
    if not wanted:
        yield
        return
    process = multiprocessing.get_context("spawn").Process(target=_compute, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join(5)


def main(
    data: Annotated[
        Path, typer.Option(help="folder with streams/; if there is none, the bundled samples are used")
    ] = Path("data"),
    posts: int = 256,
    sentences: int = 256,
    repeats: int = 3,
    workers: Annotated[int, typer.Option(min=1, help="default: one for each processor")] = processors(),
    busy: Annotated[bool, typer.Option("--neighbour", help="with another process that computes")] = False,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    lines = inputs(data, {"posts": posts, "sentences": sentences})
    records = {t: [Inbound(t, 0, i, None, v, 0.0) for i, v in enumerate(ls)] for t, ls in lines.items()}
    models = {s.name: load_task(s.name, Settings()).current for s in STAGES if s.name != "summarization"}
    with neighbour(busy):
        runs = runs_of(records, models, workers, repeats)
    figures = {
        "records": sum(map(len, records.values())),
        "repeats": repeats,
        "workers": workers,
        "neighbour": busy,
        **compared(runs, sum(map(len, records.values()))),
    }
    print_and_write({**figures, **provenance("pipeline.workers")}, result)


def runs_of(
    records: dict[str, list[Inbound]], models: dict[str, Loaded], workers: int, repeats: int
) -> dict[str, list[dict[str, Any]]]:
    """The runs of each form, after one of each with few records."""
    few = {t: own[:64] for t, own in records.items()}
    forms = {"one_worker": (1, workers), "workers": (workers, 1)}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in forms}
    for form in forms.values():
        measured(few, models, *form)
    for i in range(repeats):
        # In turn first and second, so that what changes in time changes both.
        for name in list(forms)[:: 1 if i % 2 == 0 else -1]:
            runs[name].append(measured(records, models, *forms[name]))
    return runs


def compared(runs: dict[str, list[dict[str, Any]]], n: int) -> dict[str, Any]:
    """Medians of the runs of `n` records, and the ratios of one worker's to those of several."""
    medians = {
        name: {key: statistics.median(run[key] for run in own) for key in ("seconds", "cpu_seconds")}
        for name, own in runs.items()
    }
    ratios = [
        round(one["seconds"] / other["seconds"], 3)
        for one, other in zip(runs["one_worker"], runs["workers"], strict=True)
    ]
    return {
        **{f"{name}_records_per_second": round(n / m["seconds"], 2) for name, m in medians.items()},
        **{f"{name}_cpu_seconds": round(m["cpu_seconds"], 2) for name, m in medians.items()},
        "speed_ratio": statistics.median(ratios),
        "speed_ratios": ratios,
        "cpu_ratio": round(medians["workers"]["cpu_seconds"] / medians["one_worker"]["cpu_seconds"], 3),
        "same_bytes": len({run["digest"] for own in runs.values() for run in own}) == 1,
    }


if __name__ == "__main__":
    typer.run(main)
