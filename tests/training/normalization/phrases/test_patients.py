"""Phrases of training mentions: which are kept, and the threshold that loses nothing on unseen terms."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.encoder.model import Encoder
from models.normalization import patient_phrases as files
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from training.common.codings.split import mention_key, pts_by_term, right_terms
from training.common.corpora import GoldCoding
from training.normalization.phrases.patients import (
    DRAWS,
    GRID,
    Effect,
    collect,
    draws,
    effects,
    phrases_of,
    threshold,
)

TERMS = [
    Term("Insomnia", "Insomnia", "-"),
    Term("Sleeplessness", "Insomnia", "-"),
    Term("Headache", "Headache", "-"),
    Term("Rash", "Rash", "-"),
    Term("Nausea", "Nausea", "-"),
    Term("Fatigue", "Fatigue", "-"),
    Term("Dizziness", "Dizziness", "-"),
]
BY_TERM = pts_by_term(TERMS)


def gold(mention: str, drug: str, *terms: str) -> GoldCoding:
    return GoldCoding(mention, f"I had {mention} today", drug, terms)


GOLDS = [
    gold(f"{words} {n}", f"drug{n}", term)
    for n in range(6)
    for words, term in (
        ("grommet spline", "Insomnia"),
        ("purple walrus", "Headache"),
        ("tax return", "Rash"),
        ("jazz trumpet", "Nausea"),
        ("garden fence", "Fatigue"),
        ("chess opening", "Dizziness"),
    )
]


def test_a_phrase_has_one_preferred_term_and_is_not_itself_a_term() -> None:
    golds = [
        gold("Eyes  wide open", "a", "Insomnia"),
        gold("eyes wide open", "b", "Sleeplessness"),
        gold("awful", "a", "Rash"),
        gold("awful", "b", "Nausea"),
        gold("sleeplessness", "a", "Insomnia"),
        gold("unknown", "a", "No such term"),
    ]
    assert collect(golds, BY_TERM) == {"eyes wide open": "Insomnia"}


def test_a_draw_holds_out_whole_drugs_and_whole_terms() -> None:
    drawn = list(draws(GOLDS, BY_TERM, 1))
    assert len(drawn) == DRAWS
    assert drawn == list(draws(GOLDS, BY_TERM, 1)) != list(draws(GOLDS, BY_TERM, 2))
    for rest, test in drawn:
        assert not {mention_key(g.mention) for g in rest} & {mention_key(g.mention) for g in test}
        unseen = {pt for g in test for pt in right_terms(g, BY_TERM)} - {
            pt for g in rest for pt in right_terms(g, BY_TERM)
        }
        assert unseen
        assert test


def test_phrases_raise_the_accuracy_where_their_terms_are_known(mini: Encoder) -> None:
    grid = effects(mini, TERMS, mini.embed([t.llt for t in TERMS]), GOLDS, 1)
    assert [e.at_least for e in grid] == list(GRID)
    # No term is like these mentions; only the phrases are.
    assert max(e.accuracy for e in grid) > grid[-1].accuracy + 0.2
    # What is not near any phrase is coded as without them.
    assert grid[-2].unseen >= grid[0].unseen


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([(0.0, 0.9, 0.5), (0.8, 0.8, 0.7), (1.01, 0.7, 0.7)], 0.8),
        ([(0.0, 0.9, 0.7), (0.8, 0.8, 0.7), (1.01, 0.7, 0.7)], 0.0),
        ([(0.0, 0.9, 0.1), (0.8, 0.8, 0.1), (1.01, 0.7, 0.7)], 1.01),
    ],
)
def test_the_threshold_loses_nothing_on_preferred_terms_that_training_never_has(
    rows: list[tuple[float, float, float]], chosen: float
) -> None:
    assert threshold([Effect(*row) for row in rows]) == chosen


def test_phrases_are_read_back_as_they_were_written(mini: Encoder, tmp_path: Path) -> None:
    phrases = phrases_of(mini, TERMS, GOLDS, 0.85)
    assert len(phrases.texts) == len(GOLDS)
    files.write(tmp_path / "phrases.tsv", phrases.texts, phrases.pts)
    assert files.read(tmp_path / "phrases.tsv") == (phrases.texts, phrases.pts)


@pytest.mark.parametrize("content", ["", "a\tb\n", "phrase\tpt\nalone\n", "phrase\tpt\n\tRash\n"])
def test_a_broken_file_of_phrases_is_refused_and_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "phrases.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"phrases\.tsv"):
        files.read(path)


def test_phrases_of_unknown_terms_are_left_out() -> None:
    phrases = Phrases(("a", "b", "c"), ("Rash", "Unknown", "HEADACHE"), torch.eye(3), 0.5)
    kept = phrases.within(TERMS)
    assert (kept.texts, kept.pts) == (("a", "c"), ("Rash", "Headache"))
    assert isinstance(kept.vectors, torch.Tensor)
    assert torch.equal(kept.vectors, torch.eye(3)[[0, 2]])
