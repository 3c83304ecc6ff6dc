"""Models in several threads at once answer what they answer alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from models.loading import as_json, load
from models.releases.manifest import Release
from models.types import ADE, DRUG, TASKS, Case, Mention, Query

THREADS = 3
TEXTS = (
    "Zoloft gave me a rash and no sleep.",
    "Took aspirin. The pain went away, the MS did not.",
    "the drug pain and the BP were high",
    "metformin caused nausea (N) in nine patients " * 3,
)


def in_threads(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each call returns when all of them start at the same time."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait(30)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [f.result(60) for f in [pool.submit(run, call) for call in calls]]


@pytest.mark.parametrize("task", TASKS)
def test_a_model_in_several_threads_answers_as_alone(task: str, tiny: dict[str, Release]) -> None:
    model: Any = load(tiny[task], dtype="float32").model
    inputs: list[Any] = list(TEXTS)
    if task == "normalization":
        inputs = [Query(t, 0, 6, t[:6]) for t in TEXTS]
    if task == "relation":
        inputs = [
            Case(t, (Mention(0, 6, t[:6], DRUG, 1.0), Mention(9, 14, t[9:14], ADE, 1.0))) for t in TEXTS
        ]
    batches = [[inputs[(i + j) % len(inputs)] for j in range(1 + i % 3)] for i in range(4 * THREADS)]
    alone = [as_json(model.predict(batch)) for batch in batches]

    def several(first: int) -> list[Any]:
        return [as_json(model.predict(batch)) for batch in batches[first::THREADS]]

    together = in_threads([lambda i=i: several(i) for i in range(THREADS)])  # type: ignore[misc]
    for i in range(THREADS):
        assert together[i] == alone[i::THREADS]
