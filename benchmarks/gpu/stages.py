"""Every stage on the GPU and on the processor, over what it reads in the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from benchmarks.speed.setup import BATCH, Setup
from benchmarks.speed.timing import by_turns, chunks, side_by_side
from models.releases.loading import as_json, same_answers
from streams.agents.pipeline import STAGES
from streams.releases.handle import load_task
from streams.settings import Settings
from streams.stage import Stage

#: By how much numbers of the same answers may differ.
TOLERANCE = 0.1


def stages(setup: Setup, device: str, names: Collection[str]) -> dict[str, Any]:
    """The named stages on the processor, in its number format and with all workers, and on the GPU in both
    formats, with one thread. Answers are compared with those of the processor in 32 bits.
    """
    rows = {}
    for stage in (s for s in STAGES if s.name in names):
        settings = {
            "exact": Settings(dtype="float32"),
            "gpu_float32": Settings(device=device, dtype="float32"),
            "gpu_bfloat16": Settings(device=device, dtype="bfloat16"),
        }
        models = {"cpu": setup.models[stage.name].model}
        models |= {name: load_task(stage.name, own).current.model for name, own in settings.items()}
        for (topic, name), records in setup.before.items():
            if name != stage.name:
                continue
            forms = {key: _calls(stage, model, records) for key, model in models.items()}
            expected = _answers(forms["exact"])
            workers = {"cpu": setup.workers, "gpu_float32": 1, "gpu_bfloat16": 1}
            times = by_turns(
                {key: partial(side_by_side, forms[key], n) for key, n in workers.items()},
                setup.amount.repeats,
            )
            rows[f"{stage.name} of {topic}"] = {
                "records": len(records),
                **{f"{key}_per_second": round(len(records) / times[key].wall, 1) for key in workers},
                "gpu_float32_is_faster": round(times["cpu"].wall / times["gpu_float32"].wall, 2),
                **{f"{key}_same": _same(_answers(forms[key]), expected) for key in workers},
            }
    return {
        "what": "records in memory; same: share of records with the answers of the processor in 32 bits, "
        f"numbers within {TOLERANCE}",
        "number_format_of_the_processor": setup.number_format,
        "workers_on_the_processor": setup.workers,
        "rounds": setup.amount.repeats,
        "batch": BATCH,
        "rows": rows,
    }


def _calls(stage: Stage[Any, Any], model: Any, records: Sequence[Any]) -> list[Callable[[], Any]]:
    return [partial(stage.predict, model, batch) for batch in chunks(records, BATCH)]


def _answers(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    return [as_json(record) for call in calls for record in call()]


def _same(answers: Sequence[Any], expected: Sequence[Any]) -> float:
    return round(
        sum(same_answers(a, b, TOLERANCE) for a, b in zip(answers, expected, strict=True)) / len(expected), 4
    )
