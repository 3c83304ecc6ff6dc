"""The records of the chaos benchmark, and the counting of its errors."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from benchmarks.chaos.records import EDITIONS, Result, count_errors, make_records
from benchmarks.chaos.workers import Workers
from tests.integration import processes
from tests.variants import MARKER

MARKS = {"v1": "mark-a", "v2": "mark-b"}
SENT = [("0-0", "text edition 1"), ("0-0", "text edition 2")]


def output(edition: int, version: str = "v1", mark: str = "mark-a", **more: Any) -> dict[str, Any]:
    return {
        "id": "0-0",
        "text": f"text edition {edition}",
        "record_id": f"0-0/{edition}@{version}",
        "releases": {"ner": version},
        "mentions": [{"text": MARKER, "generic": mark, "label": "DRUG"}],
        **more,
    }


def origin(offset: int) -> dict[str, Any]:
    return {"topic": "posts", "partition": 0, "offset": offset}


def test_the_editions_of_a_report_are_sent_in_order() -> None:
    records = make_records(random.Random(1), 7, 20)
    assert len(records) == 20
    editions = [int(text.rsplit(" ", 1)[1]) for id_, text in records if id_ == "7-0"]
    assert editions == list(range(1, EDITIONS + 1))
    assert all(MARKER in text for _, text in records)


def test_a_worker_that_ends_before_it_is_ready_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[mock.Mock] = []

    def started(*_: str, **__: object) -> mock.Mock:
        # The second one has ended by itself.
        made.append(mock.Mock(pid=len(made), poll=mock.Mock(return_value=1 if len(made) == 1 else None)))
        return made[-1]

    monkeypatch.setattr(processes, "started", started)
    monkeypatch.setattr(processes, "is_ready", lambda port: len(made) > 2)
    workers = Workers({}, tmp_path)
    workers.wait_ready()
    assert (len(workers), len(made), workers.restarted) == (2, 3, 1)


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([output(1), output(2)], {}),
        ([output(1)], {"missing": 1, "stale": 1, "out_of_order": 1}),
        ([output(2), output(1)], {"stale": 1, "out_of_order": 1}),
        ([output(2, origin=origin(8)), output(1, origin=origin(7))], {"out_of_order": 1}),
        ([output(1), output(2, mark="mark-b")], {"mixed": 1}),
        ([output(1), output(1), output(2)], {"repeated": 1}),
        ([output(1), output(1, drug="another"), output(2)], {"repeated_otherwise": 1}),
        ([output(1), output(1, "v2", "mark-b"), output(2)], {"again_after_reload": 1}),
    ],
)
def test_errors_are_counted_by_kind(outputs: list[dict[str, Any]], expected: dict[str, int]) -> None:
    result = Result(0, 2)
    count_errors(result, SENT, outputs, MARKS)
    kinds = (
        "missing", "mixed", "stale", "out_of_order", "repeated", "repeated_otherwise", "again_after_reload",
    )  # fmt: skip
    assert {kind: getattr(result, kind) for kind in kinds if getattr(result, kind)} == expected
    harmless = {"repeated", "again_after_reload"}
    assert result.sound == (set(expected) <= harmless)
    result.suspended = 1
    assert result.sound == (set(expected) <= {*harmless, "out_of_order"})
