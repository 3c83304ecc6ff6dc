"""Times several variants in turn, so that a busy machine disturbs all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from streams.inference import set_threads


class Timed(NamedTuple):
    """Wall-clock seconds and processor seconds."""

    wall: float
    cpu: float


def timed(work: Callable[[], Any]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu)


def by_turns(forms: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, Timed]:
    """Medians of each variant after one warm-up run of each; every other round is in reverse order."""
    taken: dict[str, list[Timed]] = {name: [] for name in forms}
    for i in range(-1, repeats):
        for name in list(forms)[:: 1 if i % 2 else -1]:
            one = timed(forms[name])
            if i >= 0:
                taken[name].append(one)
    return {name: Timed(*map(statistics.median, zip(*own, strict=True))) for name, own in taken.items()}


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
