"""Agreement of two readers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.reviews.agreement import Agreement, agree, kappa
from tests.streams.store.messages import FOUND


@pytest.mark.parametrize(
    ("table", "agreed", "expected"),
    [
        ({"aa": 20, "ab": 5, "ba": 10, "bb": 15}, 0.7, 0.4),
        ({"aa": 45, "ab": 15, "ba": 25, "bb": 15}, 0.6, 0.1304),
        ({"aa": 25, "ab": 35, "ba": 5, "bb": 35}, 0.6, 0.2593),
        ({"aa": 3}, 1.0, None),
    ],
)
def test_kappa_of_known_tables(table: dict[str, int], agreed: float, expected: float | None) -> None:
    answers = [(pair[0], pair[1]) for pair, n in table.items() for _ in range(n)]
    assert kappa(answers) == Agreement(sum(table.values()), agreed, expected)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"review": "accept"}, {"review": "correct"}, True),
        ({"review": "accept"}, {"review": "reject"}, False),
        ({"review": "reject", "negated": True}, {"review": "reject"}, True),
        ({"review": "accept"}, {"review": "correct", "pt": "Vomiting"}, False),
        ({"review": "correct", "start": 3, "end": 9}, {"review": "accept"}, False),
        ({"review": "correct", "drugs": ("a", "b")}, {"review": "correct", "drugs": ("b", "a")}, True),
    ],
)
def test_two_readings_agree_where_they_say_the_same(
    one: dict[str, Any], other: dict[str, Any], expected: bool
) -> None:
    states = [replace(FOUND, **changes) for changes in (one, other)]
    assert agree(*states) is expected
