"""How long do the statistics of a million pairs take, and those of one pair that changed?

Pairs are drawn from a gamma-Poisson model, one row for each pair. Compare the ratios, not the seconds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.machine import print_and_write, provenance
from streams.signals.live import LiveStatistics
from streams.signals.population import Tables
from streams.signals.statistics.tables import Counts
from training.common.program_help import run_program

REPEATS = 3
CHANGES = 50
DEFINITIONS = {
    "refit": "seconds to fit the prior from the last one on and to compute all statistics anew; median",
    "refit, processor": "the same in processor time: the machine was busy with other work",
    "change": "milliseconds to set the counts of one pair and compute its statistics; median",
    "refit over change": "what a change would cost, in changes, if everything were computed anew",
}


def drawn(pairs: int) -> Tables:
    """Pairs with at least one report, with expectations over several orders of magnitude."""
    rng = np.random.default_rng(1)
    found: list[np.ndarray] = []
    while sum(map(len, found)) < pairs:
        drug, term = np.exp(rng.normal(7, 1.5, (2, pairs))).round() + 20
        n = rng.poisson(rng.gamma(1.2, 1 / 1.2, pairs) * drug * term / 5e6).astype(float)
        n = np.minimum(n, np.minimum(drug, term))
        found.append(np.column_stack([n, drug, term])[n > 0])
    n, drug, term = np.concatenate(found)[:pairs].T
    names = [(f"drug {i // 1000}", f"term {i % 1000}") for i in range(pairs)]
    return Tables(names, Counts(n, drug, term, np.full(pairs, 5e6)), 5_000_000)


def seconds(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Medians over the repeats, of the time and of the processor time."""
    taken = []
    for _ in range(repeats):
        started, cpu = time.perf_counter(), time.process_time()
        work()
        taken.append((time.perf_counter() - started, time.process_time() - cpu))
    times, cpus = zip(*taken, strict=True)
    return statistics.median(times), statistics.median(cpus)


def main(
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
    pairs: Annotated[int, typer.Option(min=1000, help="number of pairs")] = 1_000_000,
) -> None:
    tables = drawn(pairs)
    live = LiveStatistics(tables)
    refit, cpu = seconds(live.refit, REPEATS)
    one = tables.counts.take(np.array([7]))
    change, _ = seconds(lambda: live.change([tables.pairs[7]], one), CHANGES)
    figures = {
        "pairs": pairs,
        "refit": round(refit, 2),
        "refit, processor": round(cpu, 2),
        "change": round(1000 * change, 2),
        "refit over change": round(refit / change),
    }
    print_and_write({**figures, "definitions": DEFINITIONS, **provenance("signals")}, result)


if __name__ == "__main__":
    run_program(main)
