"""Alarms: which posts get an event, by threshold on the probability of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from models.encoder.word_pieces import WordPieces
from models.ner.sentences import read_together
from models.ner.tagging import Reading, Tagged
from models.types import ADE, DRUG, Mention
from training.evaluation.alarms import Post, alarm_curve, alarms, event_scores


def mention(text: str, part: str, label: str = ADE) -> Mention:
    start = text.index(part)
    return Mention(start, start + len(part), part, label, 0.9)


def test_flagged_mentions_and_other_labels_are_no_alarm() -> None:
    text = "zoloft gave me hives and no rash"
    found = [mention(text, "zoloft", DRUG), mention(text, "hives"), mention(text, "rash")]
    assert alarms(text, found) == [(15, 20)]


class Tagger:
    """Gives each line of a text its mentions, if its probability of an event reaches the threshold."""

    event_head = object()

    def __init__(self, found: dict[str, list[Mention]], probabilities: dict[str, float]) -> None:
        self._found, self._probabilities = found, probabilities

    def read(self, texts: Sequence[str]) -> Reading:
        split = read_together(texts, 0)
        lines = [texts[s.text][s.words.starts[0] : s.words.ends[-1]] for s in split]
        tagged = [
            Tagged([], np.zeros(0, np.float32), self._probabilities[line], WordPieces([], [], []), 0)
            for line in lines
        ]
        return Reading(texts, split, torch.zeros(0, 1), tagged)

    def mentions_of(self, reading: Reading, event_below: float) -> list[list[Mention]]:
        made: list[list[Mention]] = [[] for _ in reading.texts]
        for sentence, tagged in zip(reading.sentences, reading.tagged, strict=True):
            text, start = reading.texts[sentence.text], sentence.words.starts[0]
            line = text[start : sentence.words.ends[-1]]
            if tagged.event >= event_below:
                own = self._found.get(line, [])
                made[sentence.text] += [replace(m, start=m.start + start, end=m.end + start) for m in own]
        return made


def curve(
    found: dict[str, list[Mention]], probabilities: dict[str, float], posts: Sequence[Post]
) -> dict[str, Any]:
    model: Any = Tagger(found, probabilities)
    return alarm_curve(model, posts)


def test_shares_are_of_the_posts_with_and_without_an_event() -> None:
    one, other, calm, false = "x gave me hives", "y gave me hives", "z is cheap", "z makes me sick of it"
    posts = [
        Post(one, ((10, 15),), True),
        Post(other, ((0, 1),), True),
        Post(calm, (), False),
        Post(false, (), False),
    ]
    found = {one: [mention(one, "hives")], other: [mention(other, "hives")], false: [mention(false, "sick")]}
    result = curve(found, {one: 0.9, other: 0.6, calm: 0.7, false: 0.3}, posts)
    rows = {row["threshold"]: row for row in result["curve"]}
    assert rows[0.0] == {"threshold": 0.0, "alarmed": 1.0, "hit": 0.5, "false": 0.5}
    assert rows[0.3] | {"threshold": 0.0} == rows[0.0]
    assert rows[0.5] == {"threshold": 0.5, "alarmed": 1.0, "hit": 0.5, "false": 0.0}
    assert rows[0.8] == {"threshold": 0.8, "alarmed": 0.5, "hit": 0.5, "false": 0.0}
    assert result["auc"] == pytest.approx(0.75)
    assert (result["posts"], result["own_event"]) == (4, 2)


def test_a_threshold_applies_to_each_sentence_of_a_post() -> None:
    right, wrong, calm = "x gave me hives", "sick of it", "z is cheap"
    posts = [Post(f"{wrong}\n{right}", ((21, 26),), True), Post(calm, (), False)]
    found = {right: [mention(right, "hives")], wrong: [mention(wrong, "sick")]}
    result = curve(found, {right: 0.4, wrong: 0.9, calm: 0.1}, posts)
    rows = {row["threshold"]: row for row in result["curve"]}
    assert [rows[t]["hit"] for t in (0.3, 0.4, 0.5, 0.9, 0.95)] == [1, 1, 0, 0, 0]
    assert [rows[t]["alarmed"] for t in (0.3, 0.4, 0.5, 0.9, 0.95)] == [1, 1, 1, 1, 0]


def test_the_baseline_takes_every_name_of_the_terminology_for_an_event() -> None:
    named, denied, lay = "zoloft, insomnia again", "zoloft and no insomnia", "zoloft kept me up"
    posts = [Post(named, ((8, 16),), True), Post(lay, ((7, 17),), True), Post(denied, (), False)]
    result = curve({}, dict.fromkeys((named, denied, lay), 0.5), posts)
    assert result["baseline"] == {"threshold": 0.0, "alarmed": 0.5, "hit": 0.5, "false": 0.0}
    assert result["curve"][0]["alarmed"] == 0.0


def test_events_are_scored_by_span_and_posts_by_alarm() -> None:
    right, wrong, calm = "insomnia and sore legs on x", "x ended my insomnia", "x is cheap"
    posts = [Post(right, ((0, 8), (13, 22)), True), Post(wrong, (), False), Post(calm, (), False)]

    class Predicting:
        def predict(self, texts: Sequence[str]) -> list[list[Mention]]:
            return [[mention(t, "legs")] if t == right else [] for t in texts]

    model: Any = Predicting()
    assert event_scores(model, posts) == {
        "tagger": {"precision": 1.0, "recall": 0.5, "f1": 1.0, "hit": 1.0, "false": 0.0},
        "baseline": {"precision": 0.6667, "recall": 1.0, "f1": 0.6667, "hit": 1.0, "false": 0.5},
    }
