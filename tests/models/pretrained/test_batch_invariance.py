"""Every shipped model is batch-invariant."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from models.types import TASKS, Case, Query
from streams.cli.demo.run import samples
from streams.rollout.handle import load_task
from streams.settings import Settings
from tests.same import same_records
from training.common.bundled_tagger import tagged


def texts_of_all_lengths(n: int) -> list[str]:
    """Of the samples of each input topic `n` texts, from the shortest to the longest."""
    chosen = []
    for path in samples().values():
        texts = sorted((orjson.loads(line)["text"] for line in path.read_bytes().splitlines()), key=len)
        chosen += [texts[i * (len(texts) - 1) // (n - 1)] for i in range(n)]
    return chosen


@pytest.mark.parametrize("task", TASKS)
def test_the_output_for_a_record_does_not_depend_on_its_batch(task: str) -> None:
    # Few texts have an acronym; a summary takes longest.
    texts = texts_of_all_lengths(15 if task in {"acronym", "relation"} else 4)
    inputs: list[Any] = list(texts)
    if task == "normalization":
        inputs = [Query(t, 0, len(t), " ".join(t.split()[:4])) for t in texts]
    if task == "relation":
        inputs = [Case(text, tuple(mentions)) for text, mentions in zip(texts, tagged(texts), strict=True)]
    model: Any = load_task(task, Settings()).current.model
    expected = list(model.predict(inputs))
    assert sum(map(bool, expected)) > 5
    order = list(range(len(inputs)))
    random.Random(5).shuffle(order)
    for size in (1, 5):
        for start in range(0, len(order), size):
            part = order[start : start + size]
            answers = model.predict([inputs[i] for i in part])
            assert same_records(list(answers), [expected[i] for i in part]), f"in batches of {size}"
