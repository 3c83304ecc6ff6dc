"""How does the pipeline scale with threads in a process, and with processes on the partitions of a broker?

Threads predict from memory, records of all topics through their stages; processes are `pvstream up`. More
threads are predicted by Amdahl's law from the share of the time in which the first one holds Python's global
lock (`lock.py`). Processes have a lock each, and nothing is predicted of them.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.feeding import Child, Load, Taken, Turn, feed
from benchmarks.speed.brokers import Line, clients, lines
from benchmarks.speed.setup import BATCH
from streams.agents.pipeline import stages_from
from streams.broker.embedded import EmbeddedBroker
from streams.codec import decode
from streams.inference_threads import processors
from streams.records import Report
from streams.settings import Settings
from tests.integration import processes

#: Records of each topic, together 4,096; the bundled samples are fewer, and are repeated.
RECORDS = {"posts": 891, "sentences": 3000, "questions": 205}
QUICK_SHARE = 16
BATCHES = (16, 128, 256, 512)
#: Threads whose speed-up is predicted.
PREDICTED = (4, 8, 16)
#: Batches that each thread has at least.
EACH = 4
#: Processes on the embedded broker, whose topics have so many partitions.
MOST_EMBEDDED = 4
#: Seconds in which a turn, or a run over the broker with its start, must end.
LONGEST = 1800.0


def scaling(inputs: dict[str, list[bytes]], kafka: str | None, quick: bool) -> dict[str, Any]:
    """Rows by threads, by batches, predicted ones, and by processes."""
    least = sum(RECORDS.values()) // (QUICK_SHARE if quick else 1)
    n = processors()
    taken = _in_threads(inputs, n, least, BATCHES[:1] if quick else BATCHES)
    one = taken[1, BATCH]
    rows = {}
    for (threads, batch), t in taken.items():
        measured = {"lock_share": round(t.lock_share, 3), "cpu_ms_a_record": round(t.cpu_ms_a_record, 2)}
        row = _row(threads, t.per_second, one.per_second, t.megabytes)
        rows[f"{threads} threads, batch {batch}"] = row | measured
    for threads in (number for number in PREDICTED if number > n):
        rate = one.per_second / (one.lock_share + (1 - one.lock_share) / threads)
        rows[f"{threads} threads, predicted"] = _row(threads, rate, one.per_second, None)
    first = None
    for count, threads in _shapes(n, MOST_EMBEDDED if kafka is None else n)[: 2 if quick else None]:
        rate, megabytes = _in_processes(inputs, kafka, (count, threads), least)
        first = first or rate
        rows[f"{count} processes of {threads} threads"] = _row(count * threads, rate, first, megabytes)
    return {
        "what": "records of all topics; speed to one thread, or to one process of one thread",
        "records": least,
        "distinct": sum(map(len, inputs.values())),
        "broker": "embedded broker" if kafka is None else "Apache Kafka",
        "rows": rows,
    }


def _row(workers: int, rate: float, first: float, megabytes: float | None) -> dict[str, Any]:
    """None stands for what was not measured."""
    return {
        "records_per_second": round(rate, 1),
        "speed_to_one": round(rate / first, 2),
        "of_each_worker": round(rate / first / workers, 2),
        "lock_share": None,
        "cpu_ms_a_record": None,
        "megabytes_a_worker": None if megabytes is None else round(megabytes / workers),
    }


def _in_threads(
    inputs: dict[str, list[bytes]], n: int, least: int, sizes: Sequence[int]
) -> dict[tuple[int, int], Taken]:
    """By threads and batch: one to `n` threads with the default batch, and `n` with other batches."""
    ways = [
        ([stage.name for stage in stages_from(topic)], [decode(Report, line) for line in own])
        for topic, own in inputs.items()
    ]
    taken = {}
    with Child(feed) as child:
        child.tell(Load(ways=ways))
        child.answer(time.monotonic() + LONGEST)
        for threads, batch in [*((count, BATCH) for count in _counts(n)), *((n, size) for size in sizes)]:
            for records in (threads * batch, max(least, EACH * threads * batch)):  # the first to warm up
                child.tell(Turn(batch, threads, records))
                taken[threads, batch] = child.answer(time.monotonic() + LONGEST)
    return taken


def _counts(n: int) -> Iterator[int]:
    """The powers of two below `n`, and `n`."""
    yield from (1 << i for i in range(n.bit_length()) if 1 << i < n)
    yield n


def _shapes(n: int, most: int) -> list[tuple[int, int]]:
    """Processes and the threads of each: of one thread, and as many as give each processor a thread."""
    counts = [count for count in _counts(n) if count <= most]
    return list(dict.fromkeys([(count, 1) for count in counts] + [(count, n // count) for count in counts]))


def _in_processes(
    inputs: dict[str, list[bytes]], kafka: str | None, shape: tuple[int, int], least: int
) -> tuple[float, float]:
    """Records a second through so many processes, and their memory in MB; shared pages count once."""
    count, threads = shape
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(EmbeddedBroker() if kafka is None else nullcontext())
        bootstrap = kafka or (broker.bootstrap if broker else "")
        ports, running = [processes.free_port() for _ in range(count)], []
        for i, port in enumerate(ports):
            more = {"PV_WORKERS": str(threads), "PV_THREADS": "1", "PV_STORE": str(folder / f"{i}/store")}
            more |= {"PV_RELEASES": value} if (value := os.environ.get("PV_RELEASES")) else {}
            env = processes.environment(bootstrap, port, **more)
            command = processes.running("up", "--no-web", env=env, log=folder / f"{i}.log")
            running.append(stack.enter_context(command))
        processes.wait_until(lambda: all(map(processes.is_ready, ports)), "all processes are ready", LONGEST)
        rate = asyncio.run(_rate(bootstrap, lines(inputs), least, EACH * BATCH * count * threads))
        return rate, sum(_megabytes(process.pid) for process in running)


async def _rate(bootstrap: str, records: Sequence[Line], least: int, most: int) -> float:
    """Records a second, of which at most `most` are in work at a time, after a warm-up with a tenth."""
    async with asyncio.timeout(LONGEST), clients(Settings(broker=f"kafka://{bootstrap}")) as pipeline:
        for n in (least // 10, least):
            started = time.perf_counter()
            for line in islice(cycle(records), n):
                await pipeline.wait(most - 1)
                await pipeline.send(line)
            await pipeline.wait()
    return least / (time.perf_counter() - started)


def _megabytes(pid: int) -> float:
    found = re.search(r"^Pss: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text("ascii"), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1000
