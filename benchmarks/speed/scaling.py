"""How does the pipeline scale with threads in a process, and with processes on the partitions of a broker?

Threads predict from memory, records of all topics through their stages, in two rounds of all rows, one after
the other; `spread` is the difference of the rounds. Processes are those of `pvstream up --processes`. More
threads are predicted by Amdahl's law from the share of the time in which the first one holds Python's global
lock (`lock.py`). Processes have a lock each, and nothing is predicted of them.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from itertools import cycle, islice
from pathlib import Path
from statistics import mean
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

#: Records of each topic that are read; the bundled samples are fewer, and are repeated.
RECORDS = {"posts": 891, "sentences": 3000, "questions": 205}
QUICK_SHARE = 16
BATCHES = (16, 128, 512)
#: Threads whose speed-up is predicted.
PREDICTED = (4, 8, 16)
ROUNDS = 2
#: Records of a row after the warm-up, at least: more would not end in three minutes on two processors.
LEAST = 1024
#: Batches that each thread has in a round, at least: two threads take 4,096 records in the largest batches.
EACH = 2
#: Batches of a thread that may be on their way through a broker.
ON_THE_WAY = 4
#: Processes on the embedded broker, which several that start at once cannot join reliably.
MOST_EMBEDDED = 1
#: Seconds in which a turn, or a run over the broker with its start, must end.
LONGEST = 600.0


def scaling(inputs: dict[str, list[bytes]], kafka: str | None, quick: bool) -> dict[str, Any]:
    """Rows by threads, by batches, predicted ones, and by processes."""
    least = LEAST // (QUICK_SHARE if quick else 1)
    n = processors()
    taken = _in_threads(inputs, n, least, BATCHES[:1] if quick else BATCHES)
    one = mean(t.per_second for t in taken[1, BATCH])
    lock = mean(t.lock_share for t in taken[1, BATCH])
    rows = {}
    for (threads, batch), turns in taken.items():
        rates = [t.per_second for t in turns]
        row = _row(threads, mean(rates), one, max(t.megabytes for t in turns), sum(t.records for t in turns))
        rows[f"{threads} threads, batch {batch}"] = row | {
            "spread": round((max(rates) - min(rates)) / mean(rates), 3),
            "lock_share": round(mean(t.lock_share for t in turns), 3),
            "cpu_ms_a_record": round(mean(t.cpu_ms_a_record for t in turns), 2),
        }
    for threads in (number for number in PREDICTED if number > n):
        rate = one / (lock + (1 - lock) / threads)
        rows[f"{threads} threads, predicted"] = _row(threads, rate, one, None, None)
    first = None
    for count, threads in _shapes(n, MOST_EMBEDDED if kafka is None else n)[: 2 if quick else None]:
        rate, megabytes = _in_processes(inputs, kafka, (count, threads), least)
        first = first or rate
        rows[f"{count} processes of {threads} threads"] = _row(count * threads, rate, first, megabytes, least)
    return {
        "what": "records of all topics; speed to one thread, or to one process of one thread",
        "distinct": sum(map(len, inputs.values())),
        "broker": "embedded broker" if kafka is None else "Apache Kafka",
        "rows": rows,
    }


def _row(
    workers: int, rate: float, first: float, megabytes: float | None, records: int | None
) -> dict[str, Any]:
    """None stands for what was not measured."""
    return {
        "records": records,
        "records_per_second": round(rate, 1),
        "speed_to_one": round(rate / first, 2),
        "of_each_worker": round(rate / first / workers, 2),
        "spread": None,
        "lock_share": None,
        "cpu_ms_a_record": None,
        "megabytes_a_worker": None if megabytes is None else round(megabytes / workers),
    }


def _in_threads(
    inputs: dict[str, list[bytes]], n: int, least: int, sizes: Sequence[int]
) -> dict[tuple[int, int], list[Taken]]:
    """By threads and batch the turns of all rounds: one to `n` threads with the default batch, and `n` with
    other batches.
    """
    ways = [
        ([stage.name for stage in stages_from(topic)], [decode(Report, line) for line in own])
        for topic, own in inputs.items()
    ]
    cells = [*((count, BATCH) for count in _counts(n)), *((n, size) for size in sizes)]
    taken: dict[tuple[int, int], list[Taken]] = {cell: [] for cell in cells}

    def turn(threads: int, batch: int, records: int) -> Taken:
        child.tell(Turn(batch, threads, records))
        answer: Taken = child.answer(time.monotonic() + LONGEST)
        return answer

    with Child(feed) as child:
        child.tell(Load(ways=ways))
        child.answer(time.monotonic() + LONGEST)
        turn(n, BATCH, max(least // ROUNDS, n * BATCH))  # to warm up
        for _ in range(ROUNDS):
            for threads, batch in cells:
                records = max(least // ROUNDS, EACH * threads * batch)
                taken[threads, batch].append(turn(threads, batch, records))
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
    """Records a second through so many processes, and their memory in MB with their supervisor's; shared
    pages count once.
    """
    count, threads = shape
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(EmbeddedBroker() if kafka is None else nullcontext())
        bootstrap = kafka or (broker.bootstrap if broker else "")
        first = processes.free_ports(count)
        more = {"PV_WORKERS": str(threads), "PV_THREADS": "1", "PV_STORE": str(folder / "store")}
        more |= {"PV_RELEASES": value} if (value := os.environ.get("PV_RELEASES")) else {}
        env = processes.environment(bootstrap, first, **more)
        up = stack.enter_context(running_up(count, env, folder / "log"))

        def are_ready() -> bool:
            assert up.poll() is None, (folder / "log").read_text()
            return all(map(processes.is_ready, range(first, first + count)))

        processes.wait_until(are_ready, "all processes are ready", LONGEST)
        rate = asyncio.run(_rate(bootstrap, lines(inputs), least, ON_THE_WAY * BATCH * count * threads))
        copies = Path(f"/proc/{up.pid}/task/{up.pid}/children").read_text().split() if count > 1 else []
        return rate, sum(map(_megabytes, [up.pid, *map(int, copies)]))


@contextmanager
def running_up(count: int, env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`pvstream up` for the time of the block, at whose end it is asked to stop. At SIGTERM, SIGINT or an
    error its processes are killed at once.
    """
    asked: list[int] = []
    found: list[subprocess.Popen[bytes]] = []

    def end(number: int, _: object) -> None:
        asked.append(number)
        if found:
            os.killpg(found[0].pid, signal.SIGKILL)
            raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    command = [sys.executable, "-m", "streams", "up", "--no-web", "--processes", str(count)]
    try:
        with log.open("wb") as file:
            # In a session of its own, whose processes can be killed together.
            found.append(
                subprocess.Popen(
                    command, env=env, cwd=processes.ROOT, stdout=file, stderr=file, start_new_session=True
                )
            )
        if asked:
            end(asked[0], None)
        yield found[0]
        found[0].terminate()
        found[0].wait(processes.STOP_S)
    finally:
        for process in found:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)


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
