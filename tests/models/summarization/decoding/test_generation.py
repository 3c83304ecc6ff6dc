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
