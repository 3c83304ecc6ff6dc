"""The benchmark of sentences that are read again in 32 bits."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.ner.near_ties import LIMITS, differing, row
from models.ner import model as ner_model
from models.types import ADE, Mention

RASH = Mention(0, 4, "rash", ADE, 0.9, status="own")


class Answers:
    """Answers with a status that depends on the limit."""

    def predict(self, batch: list[str]) -> list[list[Mention]]:
        return [[replace(RASH, status="own" if ner_model.UNCLEAR > 0.03 else "negated")] for _ in batch]


class Exact:
    def predict(self, batch: list[str]) -> list[list[Mention]]:
        return [[replace(RASH, score=0.8)] for _ in batch]


def test_a_text_differs_by_its_decisions_and_not_by_its_scores() -> None:
    assert differing([[RASH], []], [[replace(RASH, score=0.1)], []]) == 0
    for other in (replace(RASH, end=3), replace(RASH, status="negated"), replace(RASH, label="DRUG")):
        assert differing([[RASH], []], [[other], []]) == 1
    assert differing([[RASH]], [[]]) == 1


def test_each_limit_is_in_use_while_it_is_measured() -> None:
    before = ner_model.UNCLEAR
    figures = row({"float32": Exact(), "bfloat16": Answers()}, ["rash"] * 3, rounds=1)
    assert {limit: figures[f"differ_at_{limit}"] for limit in LIMITS} == {0.0: 3, 0.02: 3, 0.05: 0, 0.1: 0}
    assert before == ner_model.UNCLEAR
