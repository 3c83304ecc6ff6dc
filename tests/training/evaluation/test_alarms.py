"""Alarms: which posts get an event, by threshold on the probability of one."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from models.types import ADE, DRUG, Mention
from training.evaluation.alarms import Post, alarm_curve, alarms


def mention(text: str, part: str, label: str = ADE) -> Mention:
    start = text.index(part)
    return Mention(start, start + len(part), part, label, 0.9)


def test_flagged_mentions_and_other_labels_are_no_alarm() -> None:
    text = "zoloft gave me hives and no rash"
    found = [mention(text, "zoloft", DRUG), mention(text, "hives"), mention(text, "rash")]
    assert alarms(text, found) == [(15, 20)]


def tagger(found: dict[str, list[Mention]], probabilities: dict[str, float]) -> Any:
    def predict(texts: Sequence[str]) -> list[list[Mention]]:
        return [found.get(t, []) for t in texts]

    def event_probabilities(texts: Sequence[str]) -> list[float]:
        return [probabilities[t] for t in texts]

    return SimpleNamespace(predict=predict, event_probabilities=event_probabilities, event_head=object())


def test_shares_are_of_the_posts_with_and_without_an_event() -> None:
    one, other, calm, false = "x gave me hives", "y gave me hives", "z is cheap", "z makes me sick of it"
    posts = [
        Post(one, ((10, 15),), True),
        Post(other, ((0, 1),), True),
        Post(calm, (), False),
        Post(false, (), False),
    ]
    found = {one: [mention(one, "hives")], other: [mention(other, "hives")], false: [mention(false, "sick")]}
    result = alarm_curve(tagger(found, {one: 0.9, other: 0.6, calm: 0.7, false: 0.3}), posts)
    rows = {row["threshold"]: row for row in result["curve"]}
    assert rows[0.0] == {"threshold": 0.0, "alarmed": 1.0, "hit": 0.5, "false": 0.5}
    assert rows[0.5] == {"threshold": 0.5, "alarmed": 1.0, "hit": 0.5, "false": 0.0}
    assert rows[0.8] == {"threshold": 0.8, "alarmed": 0.5, "hit": 0.5, "false": 0.0}
    assert result["auc"] == pytest.approx(0.75)
    assert (result["posts"], result["own_event"]) == (4, 2)


def test_the_baseline_takes_every_name_of_the_terminology_for_an_event() -> None:
    named, denied, lay = "zoloft, insomnia again", "zoloft and no insomnia", "zoloft kept me up"
    posts = [Post(named, ((8, 16),), True), Post(lay, ((7, 17),), True), Post(denied, (), False)]
    result = alarm_curve(tagger({}, dict.fromkeys((named, denied, lay), 0.5)), posts)
    assert result["baseline"] == {"threshold": 0.0, "alarmed": 0.5, "hit": 0.5, "false": 0.0}
    assert result["curve"][0]["alarmed"] == 0.0
