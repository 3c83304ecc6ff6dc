"""The speed of several inference workers with one thread each, relative to one worker with several threads,
also with another busy process on the machine.

All run the same records through the same stages and models in one process without a broker, by turns.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch

from benchmarks.speed.setup import Setup
from benchmarks.speed.timing import by_turns
from models.releases.loading import Loaded
from streams.inference import InferenceWorkers, processors
from streams.records import Headers, Inbound
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
        """Does nothing: no record is read again."""

    def observe(self, done: Sequence[Processed]) -> None:
        """Does nothing: there is neither shadow nor drift."""


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


def parallel(setup: Setup) -> dict[str, Any]:
    """All records in memory through their stages, by several numbers of workers and threads."""
    records = {t: [Inbound(t, 0, i, None, v, 0.0) for i, v in enumerate(ls)] for t, ls in setup.lines.items()}
    several = processors()
    sizes = [(1, 1), (2, 1), (1, 2), (4, 1)] if several > 1 else [(1, 1)]
    digests: set[str] = set()
    forms = {
        f"{n} of {threads} threads": partial(_through, records, setup.models, n, threads, digests)
        for n, threads in sizes
    }
    times = by_turns(forms, setup.amount.repeats)
    with neighbour(several > 1):
        busy = {name: forms[name] for name in list(forms)[1:3]}
        times |= {f"{name}, with a neighbour": t for name, t in by_turns(busy, setup.amount.repeats).items()}
    one = times["1 of 1 threads"]
    rows = {
        name: {
            "records_per_second": round(setup.records / t.wall, 1),
            "cpu_ms_a_record": round(1000 * t.cpu / setup.records, 2),
            "speed_to_one": round(one.wall / t.wall, 2),
        }
        for name, t in times.items()
    }
    return {
        "processors": several,
        "records": setup.records,
        "neighbour": "another process that computes in one thread",
        "same_bytes": len(digests) == 1,
        "rows": rows,
    }


def _through(
    records: dict[str, list[Inbound]],
    models: dict[str, Loaded],
    workers: int,
    threads: int,
    digests: set[str],
) -> None:
    """One run, whose digest of everything that came out is added to `digests`."""
    inference = InferenceWorkers(workers, threads)
    digest = hashlib.sha256()
    try:
        for topic, own in records.items():
            chain = stages_from(by_name(topic))
            for out in asyncio.run(run_stages(own, chain, models, inference, Settings())):
                digest.update(out.value or b"")
    finally:
        inference.close()
    digests.add(digest.hexdigest())


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
