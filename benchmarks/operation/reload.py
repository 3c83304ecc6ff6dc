"""How much latency and memory does a change of model cost?

One tagging worker on a real Apache Kafka gets records at a share of its capacity: first without swaps, then
during swaps one after the other, then without again. Latency is the time from the source record's timestamp
to the output's. No record may be lost or mixed up, and memory must not increase from swap to swap.
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

from benchmarks.machine import print_and_write, provenance
from models.releases.manifest import Release
from models.releases.remote import deliver
from streams.cli.demo.run import samples
from streams.cli.ingest import RateLimit
from streams.records import Announcement
from streams.rollout import announcements
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka, own_kafka
from tests.variants import MARKER, marked
from training.common.program_help import run_program

#: Seconds that a swap may take.
SWAP_SECONDS = 60.0
#: Batches by which swaps may raise the 99th percentile of the latency.
P99_BATCHES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run does."""

    swaps: int
    pause: float
    """Seconds between swaps."""
    share: float
    """Rate of records, as a share of the worker's capacity."""
    quiet: float
    """Seconds without swaps, before and after them."""
    burst: int = 500
    """Records sent at once to measure the capacity."""
    forked: bool = False
    """The worker is forked from a server that has imported everything, which starts it sooner."""


@dataclass(slots=True)
class Figures:
    """The figures of a run; latencies in seconds, memory in bytes."""

    swaps: int = 0
    records: int = 0
    lost: int = 0
    mixed: int = 0
    repeated: int = 0
    capacity_records_per_second: float = 0.0
    share_of_capacity: float = 0.0
    batch_seconds: float = 0.0
    """Duration of a full batch at capacity."""
    p50_without: float = 0.0
    p50_with: float = 0.0
    p99_without: float = 0.0
    p99_with: float = 0.0
    p99_batches_above: float = 0.0
    """(p99_with - p99_without) / batch_seconds; at most P99_BATCHES."""
    swap_seconds_median: float = 0.0
    """Time from the announcement until the worker reports the release as live."""
    memory_before: int = 0
    memory_after: int = 0
    memory_bytes_per_swap: float = 0.0
    """Slope of a least-squares line through the memory after each swap of the second half."""
    memory: list[int] = field(default_factory=list)


class Bench:
    """A broker, a worker and two releases that take turns."""

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
        """Announces a release and waits until the worker reports it as live."""
        started = time.perf_counter()
        announcement = Announcement(
            task="ner", version=release.version, reason="publish", announced_at=datetime.now(UTC)
        )
        await announcements.send(self.settings, "ner", announcement)
        async with asyncio.timeout(SWAP_SECONDS):
            while (await asyncio.to_thread(self._get, "/releases"))["ner"]["version"] != release.version:  # noqa: ASYNC110
                # Not more often: requests use the same processors as the worker.
                await asyncio.sleep(0.25)
        self.swap_seconds.append(time.perf_counter() - started)

    async def send(self, n: int, rate: float) -> set[str]:
        """Sends `n` records at `rate` per second (0: all at once); returns their ids."""
        ids = set()
        limit = RateLimit(rate)
        async with AIOKafkaProducer(bootstrap_servers=self.kafka.bootstrap, acks="all") as producer:
            pending = []
            for _ in range(n):
                id_ = f"r{self._sent}"
                text = f"{self._texts[self._sent % len(self._texts)]}\n\n{MARKER}"
                self._sent += 1
                ids.add(id_)
                value = orjson.dumps({"id": id_, "text": text})
                pending.append(await producer.send("posts", key=id_.encode(), value=value))
                await limit.wait()
            await asyncio.gather(*pending)
        return ids

    async def swap_repeatedly(self, swaps: int, pause: float) -> None:
        """Swaps the two releases, and records the worker's memory after each swap."""
        for i in range(swaps):
            await self.swap(self.releases[i % 2])
            await asyncio.sleep(pause)
            self.memory.append(self.resident())

    def resident(self) -> int:
        """Resident memory of the worker, in bytes."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as response:
            for line in response.read().decode().splitlines():
                if line.startswith("process_resident_memory_bytes "):
                    return int(float(line.split()[1]))
        raise RuntimeError("the worker does not report its memory")

    def wait_for(self, n: int) -> None:
        """Waits until there are `n` outputs."""
        processes.wait_until(
            lambda: processes.count(self.kafka.bootstrap, "mentions") >= n, f"{n} outputs", 600
        )

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as response:
            return json.loads(response.read())


def measure(bench: Bench, plan: Plan) -> Figures:
    """Measures the capacity, then runs three phases: without swaps, with swaps, without swaps."""
    figures = Figures(swaps=plan.swaps, share_of_capacity=plan.share)
    asyncio.run(bench.swap(bench.releases[1]))
    bench.swap_seconds.clear()
    figures.capacity_records_per_second = max(_capacity(bench, i * plan.burst, plan.burst) for i in range(3))
    figures.batch_seconds = bench.settings.batch / figures.capacity_records_per_second
    rate = plan.share * figures.capacity_records_per_second
    quiet_records = round(plan.quiet * rate)

    quiet_ids = asyncio.run(bench.send(quiet_records, rate))
    figures.memory_before = bench.resident()
    swap_ids = asyncio.run(_send_during_swaps(bench, plan, rate))
    bench.wait_for(3 * plan.burst + len(quiet_ids) + len(swap_ids))
    figures.memory_after = bench.resident()
    quiet_ids |= asyncio.run(bench.send(quiet_records, rate))
    figures.records = 3 * plan.burst + len(quiet_ids) + len(swap_ids)
    bench.wait_for(figures.records)
    time.sleep(2)
    _count(figures, bench, quiet_ids, swap_ids)
    return figures


async def _send_during_swaps(bench: Bench, plan: Plan, rate: float) -> set[str]:
    """Sends one second of records at a time until the swaps are done; returns their ids."""
    swapping = asyncio.create_task(bench.swap_repeatedly(plan.swaps, plan.pause))
    ids: set[str] = set()
    while not swapping.done():
        ids |= await bench.send(round(rate), rate)
    await swapping
    return ids


def _capacity(bench: Bench, done: int, burst: int) -> float:
    """Records per second over the middle of a burst, sent after `done` records. The caller takes the best of
    several bursts: on a shared machine a slow burst shows the load of other processes.
    """
    asyncio.run(bench.send(burst, 0))
    bench.wait_for(done + burst)
    times = sorted(m.timestamp for m in processes.read_all(bench.kafka.bootstrap, "mentions"))[done:]
    middle = times[len(times) // 4 : -len(times) // 8]
    return float((len(middle) - 1) / (middle[-1] - middle[0]) * 1000)


def _count(figures: Figures, bench: Bench, quiet_ids: set[str], swap_ids: set[str]) -> None:
    """Fills in the figures from the records in the source and sink topics."""
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
    """The value below which a share of `q` of the values lies, without interpolation."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def slope(values: Sequence[float]) -> float:
    """Slope of the least-squares line through equally spaced values; 0 for fewer than two."""
    return float(statistics.linear_regression(range(len(values)), values).slope) if len(values) > 1 else 0.0


def run(kafka: LocalKafka, plan: Plan, folder: Path) -> Figures:
    """Starts a worker on this broker and measures it."""
    with ExitStack() as stack:
        port = processes.free_port()
        bench = Bench(kafka, port, folder)
        processes.create_topics(bench.settings)
        log, arguments = folder / "worker.log", ("worker", "--stage", "ner")
        stack.enter_context(processes.running(*arguments, env=bench.env, log=log, forked=plan.forked))
        processes.wait_until(lambda: processes.is_ready(port), "a worker that is ready")
        return measure(bench, plan)


def main(
    swaps: Annotated[int, typer.Option(help="number of swaps")] = 30,
    pause: Annotated[float, typer.Option(help="seconds between swaps")] = 1.5,
    share: Annotated[float, typer.Option(help="rate of records, as a share of the worker's capacity")] = 0.8,
    quiet: Annotated[
        float, typer.Option(help="seconds without swaps, before the first and after the last")
    ] = 40,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="reload-") as folder, own_kafka() as kafka:
        plan = Plan(swaps=swaps, pause=pause, share=share, quiet=quiet)
        figures = run(kafka, plan, Path(folder))
    row = {**asdict(figures), **provenance("operation.reload")}
    row["memory"] = " ".join(f"{m / 1e6:.0f}" for m in figures.memory)
    print_and_write(row, result)
    failed = figures.lost or figures.mixed or figures.p99_batches_above > P99_BATCHES
    raise typer.Exit(1 if failed else 0)


if __name__ == "__main__":
    run_program(main)
