"""Risk and coverage of the status head on posts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from models.ner.decoding import Decoding
from models.types import ADE, DRUG, NEGATED, OTHER, OWN, WITHDRAWAL, Mention
from training.evaluation.alarms import Post
from training.evaluation.own_events import THRESHOLDS, own_event_curve

TEXT = "zoloft gave me hives, no rash, my sister got a headache and I felt sick of it"
EVENTS = ((15, 20), (67, 71))


def mention(part: str, status: str | None, score: float | None, label: str = ADE) -> Mention:
    start = TEXT.index(part)
    return Mention(start, start + len(part), part, label, 0.9, status=status, status_score=score)


class Tagger:
    """Gives a post the mentions of its text; without a status head those that the tags alone would give."""

    def __init__(self, judged: dict[str, list[Mention]], plain: dict[str, list[Mention]]) -> None:
        self.decoding = Decoding()
        self.status_head: object | None = object()
        self._judged, self._plain = judged, plain

    def read(self, texts: Sequence[str]) -> Sequence[str]:
        return texts

    def mentions_of(self, reading: Sequence[str], event_below: float) -> list[list[Mention]]:
        found = self._judged if self.status_head else self._plain
        return [found.get(text, []) for text in reading]


JUDGED = [
    mention("zoloft", None, None, DRUG),
    mention("hives", OWN, 0.97),
    mention("rash", NEGATED, 0.9),
    mention("headache", OWN, 0.85),
]
PLAIN = [replace(m, status=None, status_score=None) for m in [*JUDGED, mention("sick", None, None)]]


def curve(judged: Sequence[Mention] = JUDGED, events: tuple[tuple[int, int], ...] = EVENTS) -> dict[str, Any]:
    calm = Post("zoloft is cheap", (), False)
    model: Any = Tagger({TEXT: list(judged)}, {TEXT: PLAIN})
    posts = [Post(TEXT, events, True), calm]
    result = own_event_curve(model, posts, model.read([p.text for p in posts]))
    assert model.status_head is not None
    return result


def rows(result: dict[str, Any]) -> dict[float, Any]:
    return {row["threshold"]: row for row in result["curve"]}


def test_less_sure_events_count_as_flagged_and_the_rules_lower_the_risk() -> None:
    result = curve()
    assert tuple(rows(result)) == THRESHOLDS
    assert (result["posts"], result["events"]) == (2, 2)
    by_head = {threshold: row["head"] for threshold, row in rows(result).items()}
    assert by_head[0.8] == by_head[0.5] == {"coverage": 0.5, "risk": 0.5, "unflagged": 2}
    assert by_head[0.9] == by_head[0.95] == {"coverage": 0.5, "risk": 0.0, "unflagged": 1}
    assert by_head[0.99] == {"coverage": 0.0, "risk": 0.0, "unflagged": 0}
    assert rows(curve())[0.5]["head and rules"] == {"coverage": 0.5, "risk": 0.0, "unflagged": 1}
    baselines = curve()["baselines"]
    assert baselines["no flags"] == {"coverage": 1.0, "risk": 0.5, "unflagged": 4}
    assert baselines["rules alone"] == {"coverage": 1.0, "risk": 0.0, "unflagged": 2}
    row = rows(curve([], ()))[0.5]["head"]
    assert row == pytest.approx({"coverage": 0.0, "risk": 0.0, "unflagged": 0})


def test_effects_without_a_status_are_flagged_by_the_rules_at_every_threshold() -> None:
    named = [mention("hives", None, None, WITHDRAWAL), mention("rash", None, None, WITHDRAWAL)]
    for row in curve(named)["curve"]:
        assert row["head"] == row["head and rules"] == {"coverage": 0.5, "risk": 0.0, "unflagged": 1}


def test_an_event_that_is_found_twice_is_covered_once() -> None:
    twice = [mention("hi", OWN, 0.9), mention("ves", OWN, 0.9), mention("rash", OTHER, 0.9)]
    row = rows(curve(twice, ((15, 20),)))[0.5]["head"]
    assert row == {"coverage": 1.0, "risk": 0.0, "unflagged": 2}
