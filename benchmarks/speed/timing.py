"""Wall-clock and processor seconds of work in several threads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from streams.inference_threads import set_threads


class Timed(NamedTuple):
    """Wall-clock seconds and processor seconds."""

    wall: float
    cpu: float


def timed(work: Callable[[], Any]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu)


def median(taken: Sequence[Timed]) -> Timed:
    return Timed(*map(statistics.median, zip(*taken, strict=True)))


def side_by_side(calls: Sequence[Callable[[], Any]], workers: int, threads: int = 1) -> list[Any]:
    """The results of the calls; `workers` of them run at a time, each with `threads` threads of torch."""

    def limited(call: Callable[[], Any]) -> Any:
        set_threads(threads)
        return call()

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(limited, calls))


def chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for i in range(0, len(items), size):
        yield items[i : i + size]
