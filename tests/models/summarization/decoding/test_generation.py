"""Summaries by the pointer decoder, alone and in batches."""

from __future__ import annotations

import pytest

from models.encoder.model import Encoder
from models.summarization.decoding.source_pieces import source_pieces
from tests.models.summarization.tiny_writers import pointer_writer

TEXTS = [
    "pain drug",
    "the pain of the drug is 7 times the pain",
    "x",
    "",
    "drug, drug!",
    "is the drug the pain ?",
]


@pytest.mark.parametrize("width", [8, 16, 64])
@pytest.mark.parametrize("beams", [1, 3])
def test_summaries_are_batch_invariant(
    small: Encoder, beams: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.summarization.decoding.generation.WIDTH", width)
    writer = pointer_writer(small, beams)
    together = writer.write(TEXTS)
    assert [writer.write([t])[0] for t in TEXTS] == together
    assert list(reversed(writer.write(TEXTS[::-1]))) == together
    assert all(1 <= len(own) <= beams and all(0 <= s.score <= 1 for s in own) for own in together)
    assert writer.write([]) == []


def test_a_long_text_is_truncated_in_the_middle(small: Encoder) -> None:
    pain, drug, the = small.tokenizer.convert_tokens_to_ids(["pain", "drug", "the"])
    whole, long = source_pieces(small, ["the " + "pain " * 28 + "drug", "the " + "pain " * 99 + "the drug"])
    assert whole == [the, *[pain] * 28, drug]
    assert long == [the, *[pain] * 27, the, drug]


def test_a_summary_has_only_generated_pieces_and_those_of_the_text(small: Encoder) -> None:
    writer = pointer_writer(small)
    (summaries,) = writer.write(["zebra quiz"])
    letters = set("zebraquiz" + "whatisthedrug?")
    assert all(set(s.text.lower()) - {" "} <= letters for s in summaries)


def test_a_given_summary_has_the_score_with_which_it_was_written(small: Encoder) -> None:
    writer = pointer_writer(small)
    texts = ["what is the drug?", "the pain is the drug"]
    for text, summaries in zip(texts, writer.write(texts), strict=True):
        scores = writer.scores([text], [[s.text for s in summaries]])[0]
        for score, summary in zip(scores, summaries, strict=True):
            words = summary.text.split()
            # With a repeated word the text may be split into other pieces than those that were written.
            assert score == pytest.approx(summary.score, abs=2e-3) or len(words) != len(set(words))


def test_a_summary_of_impossible_pieces_has_a_score_near_zero(small: Encoder) -> None:
    writer = pointer_writer(small)
    assert writer.scores(["drug"], [["zebra"]])[0][0] < 0.01
    assert writer.scores(["drug"], [[]]) == [[]]
