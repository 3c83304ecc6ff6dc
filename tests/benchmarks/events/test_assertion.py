"""The share of gold effects that the rules flag."""

from __future__ import annotations

from benchmarks.events.assertion import flagged
from models.types import ADE, DRUG
from training.common.corpora import GoldMention, GoldText


def test_the_flags_of_gold_effects_are_counted_by_kind_of_text() -> None:
    texts = [
        GoldText("1", "She had hives.", (GoldMention(8, 13, ADE), GoldMention(0, 3, DRUG))),
        GoldText("2", "She had no hives.", (GoldMention(11, 16, ADE),)),
    ]
    common = {"effects": 2, "negated": 0.5, "hypothetical": 0.0}
    assert flagged(texts, clinical=True) == common | {"other_experiencer": 0.0, "any flag": 0.5}
    assert flagged(texts, clinical=False) == common | {"other_experiencer": 1.0, "any flag": 1.0}
