"""The records of the chaos benchmark, and the counting of its errors."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.chaos.records import Result, count_errors
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
