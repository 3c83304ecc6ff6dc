"""The features of candidates, and the choice between decoder and templates."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from models.encoder.model import Encoder
from models.summarization.decoding.generation import Summary
from models.summarization.reranker import FEATURES, UNFITTED, RankedWriter, candidate_features, f1
from tests.models.summarization.tiny_writers import pointer_writer, ranked_writer

#: Of the four templates.
SCORES = (0.1, 0.9, 0.3, 0.2)


def test_the_features_of_candidates_computed_by_hand() -> None:
    generated, filled = [Summary("a b", 0.5)], [Summary("a c", 0.25), Summary("x y", 0.75)]
    texts, rows = candidate_features(generated, filled, [0.1, 0.0])
    assert texts == ["a b", "a c", "x y"]
    named = [dict(zip(FEATURES, row, strict=True)) for row in rows]
    assert [r["from_decoder"] for r in named] == [1, 0, 0]
    assert [r["template_score"] for r in named] == [0, 0.25, 0.75]
    assert [r["log_probability"] for r in named] == pytest.approx([math.log(p) for p in (0.5, 0.1, 1e-4)])
    assert [r["rank_decoder"] for r in named] == [0, 0, 0]
    assert [r["rank_template"] for r in named] == [0, 0, 1]
    # The F1 of "a b" and "a c" is 0.5.
    assert [r["agreement_decoder"] for r in named] == pytest.approx([1.0, 0.5, 0.0])
    assert [r["agreement_templates"] for r in named] == pytest.approx([0.125, 0.25, 0.75])


def test_without_filled_templates_the_agreement_with_them_is_zero() -> None:
    _, rows = candidate_features([Summary("a b", 0.5)], [], [])
    assert rows[0][FEATURES.index("agreement_templates")] == 0
    assert f1(Counter(), Counter()) == 0


def test_the_weights_decide_between_decoder_and_templates(small: Encoder) -> None:
    text = "what is zoloft?"
    (summaries,) = ranked_writer(small, *SCORES).write([text])
    assert [s.text for s in summaries[:3]] == ["Is zoloft bad?", "Why zoloft?", "How zoloft?"]
    assert summaries[0].score == 0.9
    (summaries,) = ranked_writer(small, *SCORES, by="from_decoder").write([text])
    assert [s.text for s in summaries[:3]] == [s.text for s in pointer_writer(small).write([text])[0]]


def test_the_number_of_weights_must_fit(small: Encoder) -> None:
    with pytest.raises(ValueError, match="2 weights"):
        RankedWriter(pointer_writer(small), ranked_writer(small, *SCORES).templates, [1.0, 2.0])


def test_ranking_is_batch_invariant(small: Encoder) -> None:
    writer = RankedWriter(pointer_writer(small), ranked_writer(small, *SCORES).templates, UNFITTED)
    texts = ["zoloft gives pain", "x", "", "is the drug a pain?"]
    together = writer.write(texts)
    assert [writer.write([t])[0] for t in texts] == together
    assert all(together)
