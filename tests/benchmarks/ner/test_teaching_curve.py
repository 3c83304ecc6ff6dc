"""The benchmark that trains the tagger on shares of the teaching corpus."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
import typer

from benchmarks.ner.teaching_curve import drawn, mixture, rows, stored
from models.types import ADE, LABELS
from training.common.corpora import GoldMention, GoldText
from training.ner.data import TEACHING, Corpus


def test_texts_come_equally_often_and_again_where_there_are_few() -> None:
    counts = Counter(drawn("abc", 8, random.Random(1)))
    assert sorted(counts.values()) == [2, 3, 3]
    assert len(set(drawn(range(100), 60, random.Random(1)))) == 60
    assert drawn([], 5, random.Random(1)) == []


def corpus(*texts: str) -> Corpus:
    made = [GoldText(str(i), t, (GoldMention(0, 4, ADE),)) for i, t in enumerate(texts)]
    return Corpus(made, [], LABELS, None, None)


def test_half_of_the_texts_are_taught_if_any_are() -> None:
    public, taught = corpus("rash again", "pain again"), corpus("gout at dawn with him")
    lengths = Counter(len(e.pieces) for e in mixture({"posts": public, TEACHING: taught}, 9, 1))
    assert len(lengths) == 2
    assert sorted(lengths.values()) == [4, 5]
    assert len(Counter(len(e.pieces) for e in mixture({"posts": public}, 9, 1))) == 1


def test_shares_with_other_settings_are_not_mixed(tmp_path: Path) -> None:
    file = tmp_path / "curve.json"
    assert stored(file, {"lr": 1}) == {}
    file.write_text(json.dumps({"settings": {"lr": 1}, "shares": {"0.0": {}}}), encoding="utf-8")
    assert stored(file, {"lr": 1}) == {"0.0": {}}
    with pytest.raises(typer.BadParameter, match="shares with other settings"):
        stored(file, {"lr": 2})


def test_a_row_has_a_score_of_all_taggers() -> None:
    first = {"texts": 0, "scores": {"f1": 0.5}, "baselines": {"f1": 0.1}, "definitions": {"f1": "F1"}}
    assert rows({"0%": first, "25%": first | {"scores": {"f1": 0.6}}}) == {
        "f1": {"0%": 0.5, "25%": 0.6, "baseline": 0.1, "definition": "F1"}
    }
