"""What does a change of model cost the records that flow meanwhile?

One tagging worker on a real Apache Kafka gets records at a share of its capacity: first without any swap,
then with one swap after the other, then without again. Latency is from the source record's timestamp to the
output's; nothing may be lost or mixed, and memory must not grow from swap to swap.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from aiokafka import AIOKafkaProducer

from benchmarks.machine import described
from models.releases.manifest import Release
from models.releases.remote import deliver
from streams.cli.demo import samples
from streams.cli.ingest import Pace
from streams.records import Announcement
from streams.releases import announcements
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka, own_kafka
from tests.variants import MARKER, marked

#: Seconds that a swap may take before the next one is asked for.
SWAP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is made of."""

    swaps: int
    pause: float
    """seconds between swaps"""
    share: float
    """of the worker's capacity"""
    quiet: float
    """seconds without swaps, before and after"""
    burst: int = 500
    """records at once, to find the capacity"""
    forked: bool = False
    """the worker is forked, which starts it sooner"""


@dataclass(slots=True)
class Figures:
    """One run; latencies in seconds, memory in bytes."""

    swaps: int = 0
    records: int = 0
    lost: int = 0
    mixed: int = 0
    repeated: int = 0
    capacity_records_per_second: float = 0.0
    share_of_capacity: float = 0.0
    batch_seconds: float = 0.0
    """One full batch at capacity."""
    p50_without: float = 0.0
    p50_with: float = 0.0
    p99_without: float = 0.0
    p99_with: float = 0.0
    p99_batches_above: float = 0.0
    """(p99 with swaps - p99 without) / batch_seconds; the bound is 2."""
    swap_seconds_median: float = 0.0
    """From the announcement until the worker says that the release is live."""
    memory_before: int = 0
    memory_after: int = 0
    memory_bytes_per_swap: float = 0.0
    """Slope of a straight line through the memory after each swap of the second half."""
    memory: list[int] = field(default_factory=list)


class Bench:
    """A broker, a worker, two releases that take turns."""

    def __init__(self, kafka: LocalKafka, port: int, folder: Path) -> None:
        self.kafka = kafka
        self.port = port
        self.settings = Settings(broker=f"kafka://{kafka.bootstrap}", store=str(folder / "store"))
        self.env = processes.environment(kafka.bootstrap, port, PV_STORE=self.settings.store)
        self.releases = [marked(folder / "made", f"mark-{name}") for name in "ab"]
        self.marks = {r.version: f"mark-{name}" for r, name in zip(self.releases, "ab", strict=True)}
        for release in self.releases:
            deliver(release, self.settings.store)
        self._texts = [orjson.loads(line)["text"] for line in samples()["posts"].read_bytes().splitlines()]
        self._sent = 0
        self.memory: list[int] = []
        self.swap_seconds: list[float] = []

    async def swap(self, release: Release) -> None:
        """Announces, waits until the worker says that it is live, and looks at its memory."""
        started = time.perf_counter()
        announcement = Announcement(
            task="ner", version=release.version, reason="publish", announced_at=datetime.now(UTC)
        )
        await announcements.announce(self.settings, "ner", announcement)
        async with asyncio.timeout(SWAP_SECONDS):
            while (await asyncio.to_thread(self._asked, "/releases"))["ner"]["version"] != release.version:  # noqa: ASYNC110
                # Seldom: whatever asks takes its time from the same processors.
                await asyncio.sleep(0.25)
        self.swap_seconds.append(time.perf_counter() - started)

    async def send(self, seconds: float, rate: float) -> set[str]:
        """Records for so long, evenly (rate 0: `seconds` is a number of records, at once); their ids."""
        ids = set()
        pace = Pace(rate)
        n = round(seconds * rate) if rate else round(seconds)
        async with AIOKafkaProducer(bootstrap_servers=self.kafka.bootstrap, acks="all") as producer:
            pending = []
            for _ in range(n):
                id_ = f"r{self._sent}"
                text = f"{self._texts[self._sent % len(self._texts)]}\n\n{MARKER}"
                self._sent += 1
                ids.add(id_)
                value = orjson.dumps({"id": id_, "text": text})
                pending.append(await producer.send("posts", key=id_.encode(), value=value))
                await pace.turn()
            await asyncio.gather(*pending)
        return ids

    async def swapping(self, swaps: int, pause: float) -> None:
        for i in range(swaps):
            await self.swap(self.releases[i % 2])
            await asyncio.sleep(pause)
            self.memory.append(self.resident())

    def resident(self) -> int:
        """Bytes of the worker in memory now."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("process_resident_memory_bytes "):
                    return int(float(line.split()[1]))
        raise RuntimeError("the worker does not tell its memory")

    def wait_for(self, n: int) -> None:
        processes.wait_until(
            lambda: processes.count(self.kafka.bootstrap, "mentions") >= n, f"{n} outputs", 600
        )

    def _asked(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return json.loads(answer.read())


def measure(bench: Bench, plan: Plan) -> Figures:
    """Capacity, then three phases: quiet, swaps, quiet."""
    figures = Figures(swaps=plan.swaps, share_of_capacity=plan.share)
    asyncio.run(bench.swap(bench.releases[1]))
    bench.swap_seconds.clear()
    figures.capacity_records_per_second = max(_capacity(bench, i * plan.burst, plan.burst) for i in range(3))
    figures.batch_seconds = bench.settings.batch / figures.capacity_records_per_second
    rate = plan.share * figures.capacity_records_per_second

    quiet_ids = asyncio.run(bench.send(plan.quiet, rate))
    figures.memory_before = bench.resident()
    swap_ids = asyncio.run(_with_swaps(bench, plan.swaps, plan.pause, rate))
    bench.wait_for(3 * plan.burst + len(quiet_ids) + len(swap_ids))
    figures.memory_after = bench.resident()
    quiet_ids |= asyncio.run(bench.send(plan.quiet, rate))
    figures.records = 3 * plan.burst + len(quiet_ids) + len(swap_ids)
    bench.wait_for(figures.records)
    time.sleep(2)
    _count(figures, bench, quiet_ids, swap_ids)
    return figures


async def _with_swaps(bench: Bench, swaps: int, pause: float, rate: float) -> set[str]:
    """Sends second by second for as long as the swaps take."""
    swapping = asyncio.create_task(bench.swapping(swaps, pause))
    ids: set[str] = set()
    while not swapping.done():
        ids |= await bench.send(1, rate)
    await swapping
    return ids


def _capacity(bench: Bench, done: int, burst: int) -> float:
    """Records a second over the middle of a burst that comes after `done` records. Of several bursts the best
    counts: on a shared machine a slow one tells of the neighbours.
    """
    asyncio.run(bench.send(burst, 0))
    bench.wait_for(done + burst)
    times = sorted(m.timestamp for m in processes.read_all(bench.kafka.bootstrap, "mentions"))[done:]
    middle = times[len(times) // 4 : -len(times) // 8]
    return float((len(middle) - 1) / (middle[-1] - middle[0]) * 1000)


def _count(figures: Figures, bench: Bench, quiet_ids: set[str], swap_ids: set[str]) -> None:
    sent = {m.key.decode(): m.timestamp for m in processes.read_all(bench.kafka.bootstrap, "posts")}
    latency: dict[str, float] = {}
    for message in processes.read_all(bench.kafka.bootstrap, "mentions"):
        record = orjson.loads(message.value)
        names = {m["generic"] for m in record["mentions"] if m["text"].lower() == MARKER}
        figures.mixed += names != {bench.marks[record["releases"]["ner"]]}
        figures.repeated += record["id"] in latency
        latency.setdefault(record["id"], (message.timestamp - sent[record["id"]]) / 1000)
    figures.lost = len(sent.keys() - latency.keys())
    quiet, busy = ([latency[i] for i in ids if i in latency] for ids in (quiet_ids, swap_ids))
    figures.p50_without, figures.p50_with = (round(statistics.median(x), 3) for x in (quiet, busy))
    figures.p99_without, figures.p99_with = (round(quantile(x, 0.99), 3) for x in (quiet, busy))
    above = (figures.p99_with - figures.p99_without) / figures.batch_seconds
    figures.p99_batches_above = round(above, 2)
    figures.swap_seconds_median = round(statistics.median(bench.swap_seconds), 2)
    figures.memory = bench.memory
    figures.memory_bytes_per_swap = round(slope(bench.memory[len(bench.memory) // 2 :]))
    figures.capacity_records_per_second = round(figures.capacity_records_per_second, 1)
    figures.batch_seconds = round(figures.batch_seconds, 3)


def quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def slope(values: Sequence[float]) -> float:
    """Of the least-squares line through equally spaced values; 0 for fewer than two."""
    return float(statistics.linear_regression(range(len(values)), values).slope) if len(values) > 1 else 0.0


def run(kafka: LocalKafka, plan: Plan, folder: Path) -> Figures:
    """A worker of its own on this broker, and the three phases."""
    with ExitStack() as stack:
        port = processes.free_port()
        bench = Bench(kafka, port, folder)
        processes.create_topics(bench.settings)
        arguments = ("worker", "--stage", "ner")
        log = folder / "worker.log"
        stack.enter_context(processes.running(*arguments, env=bench.env, log=log, forked=plan.forked))
        processes.wait_until(lambda: processes.is_ready(port), "a worker that is ready")
        return measure(bench, plan)


def main(
    swaps: int = 30,
    pause: Annotated[float, typer.Option(help="seconds between swaps")] = 1.5,
    share: Annotated[float, typer.Option(help="of the worker's capacity")] = 0.8,
    quiet: Annotated[float, typer.Option(help="seconds without swaps, before and after")] = 40,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="reload-") as folder, own_kafka() as kafka:
        figures = run(kafka, Plan(swaps, pause, share, quiet), Path(folder))
    row = {**asdict(figures), **described("reload")}
    row["memory"] = " ".join(f"{m / 1e6:.0f}" for m in figures.memory)
    print(json.dumps(row, indent=2))
    if result is not None:
        result.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")
    bad = figures.lost or figures.mixed or figures.p99_batches_above > 2  # noqa: PLR2004  the bound
    raise typer.Exit(1 if bad else 0)


if __name__ == "__main__":
    typer.run(main)
