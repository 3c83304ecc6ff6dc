"""The encoder's share of the pipeline's time, and its speed relative to the machine's matrix products."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from benchmarks.speed.passes import Pass, noted
from benchmarks.speed.setup import BATCH, Setup
from benchmarks.speed.timing import Timed, by_turns, chunks, side_by_side
from models.encoder.model import Encoder

#: Rows and columns of the matrices whose product gives the machine's peak, and seconds of repetition.
SIDE, PEAK_SECONDS = 2048, 1.0
STAGES, ALONE, ONCE = "all stages", "their passes through the encoder", "base encoder, each text once"
Call = Callable[[], Any]


def roofline(setup: Setup) -> dict[str, Any]:
    """All stages in memory, without topics, against the passes of their encoders alone, and against the base
    model over each text once.
    """
    calls = [call for topic, stage in setup.before for call in setup.calls(stage, topic)]
    passes = _passes_of(calls, setup.workers)
    model: Any = setup.models["ner"].model
    dtype = model.encoder.model.dtype
    base = Encoder.for_inference("mini", dtype=dtype)
    once: list[Call] = [partial(base.embed, batch) for batch in chunks(setup.texts, BATCH)]
    again: list[Call] = [one.again for one in passes]
    forms = {STAGES: calls, ALONE: again, ONCE: once}
    times = _times(forms, setup)
    operations = {name: sum(p.operations for p in passes) for name in (STAGES, ALONE)}
    operations[ONCE] = sum(p.operations for p in _passes_of(once, 1))
    peak = _peak(setup.workers, dtype)
    rows = {
        name: {
            "wall_seconds": round(t.wall, 3),
            "cpu_seconds": round(t.cpu, 3),
            "records_per_second": round(setup.records / t.wall, 1),
            "gflops_a_cpu_second": round(operations[name] / t.cpu / 1e9, 1),
            "of_gemm_peak": round(operations[name] / t.cpu / peak, 3),
        }
        for name, t in times.items()
    }
    return {
        "what": "records in memory through all stages; the same forward passes again; operations of products",
        "number_format": setup.number_format,
        "workers": setup.workers,
        "records": setup.records,
        "gemm_peak_gflops_a_cpu_second": round(peak / 1e9, 1),
        "encoder_share_of_wall": round(times[ALONE].wall / times[STAGES].wall, 3),
        "encoder_share_of_cpu": round(times[ALONE].cpu / times[STAGES].cpu, 3),
        "rows": rows,
    }


def stages(setup: Setup) -> dict[str, Any]:
    """Each stage alone, over its inputs in the pipeline."""
    rows = {}
    for topic, stage in setup.before:
        calls = setup.calls(stage, topic)
        passes = _passes_of(calls, setup.workers)
        again: list[Call] = [one.again for one in passes]
        forms = {"stage": calls, "encoder": again}
        times = _times(forms, setup)
        n, whole = len(setup.before[topic, stage]), times["stage"]
        rows[f"{stage} of {topic}"] = {
            "records": n,
            "records_per_second": round(n / whole.wall, 1),
            "cpu_ms_a_record": round(1000 * whole.cpu / n, 2),
            "encoder_share_of_cpu": round(times["encoder"].cpu / whole.cpu, 3),
            "pieces_a_record": round(sum(p.pieces for p in passes) / n, 1),
            "padding_share": round(sum(p.padding for p in passes) / max(1, sum(p.pieces for p in passes)), 4),
            "passes_a_batch": round(len(passes) / len(calls), 1),
        }
    return {"number_format": setup.number_format, "workers": setup.workers, "batch": BATCH, "rows": rows}


def _times(forms: Mapping[str, Sequence[Call]], setup: Setup) -> dict[str, Timed]:
    """The times of the calls of each variant."""
    work = {name: partial(side_by_side, calls, setup.workers) for name, calls in forms.items()}
    return by_turns(work, setup.amount.repeats)


def _passes_of(calls: Sequence[Call], workers: int) -> list[Pass]:
    with noted() as passes:
        side_by_side(calls, workers)
    return passes


def _peak(workers: int, dtype: torch.dtype) -> float:
    """Operations of large matrix products in a processor second, in as many threads as there are workers: in
    the models' number format or in 32 bits, whichever gives more. Where a library may not use a processor's
    16-bit instructions, its products in 16 bits are many times slower.
    """

    def multiply(number_format: torch.dtype) -> float:
        one, other = (torch.rand(SIDE, SIDE).to(number_format) for _ in range(2))
        one @ other
        n, started = 0, time.thread_time()
        while time.thread_time() - started < PEAK_SECONDS:
            one @ other
            n += 1
        return 2.0 * SIDE**3 * n / (time.thread_time() - started)

    return max(
        float(statistics.mean(side_by_side([partial(multiply, number_format)] * workers, workers)))
        for number_format in {torch.float32, dtype}
    )
