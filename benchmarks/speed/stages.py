"""Each stage alone: its records a second and its processor time, over its inputs in the pipeline."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.speed.setup import BATCH, Setup
from benchmarks.speed.timing import median, side_by_side, timed


def stages(setup: Setup) -> dict[str, Any]:
    rows = {}
    for topic, stage in setup.before:
        work = partial(side_by_side, setup.calls(stage, topic), setup.workers)
        work()
        runs = []
        for _ in range(setup.amount.repeats):
            setup.forget()
            runs.append(timed(work))
        taken = median(runs)
        n = len(setup.before[topic, stage])
        rows[f"{stage} of {topic}"] = {
            "records": n,
            "records_per_second": round(n / taken.wall, 1),
            "cpu_ms_a_record": round(1000 * taken.cpu / n, 2),
        }
    return {"number_format": setup.number_format, "workers": setup.workers, "batch": BATCH, "rows": rows}
