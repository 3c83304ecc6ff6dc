"""Summaries by tiny encoder-decoders of `transformers`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.summarization import tiny_seq2seq
from training.summarization.decoder import Decoder, Search, encoder_decoder, pieces_of


@pytest.mark.parametrize("make", [tiny_seq2seq.bart, tiny_seq2seq.t5])
@pytest.mark.parametrize("beams", [1, 3])
def test_summaries_are_reproducible_and_have_scores(make: object, beams: int, tmp_path: Path) -> None:
    base = make(tmp_path)  # type: ignore[operator]
    model, tokenizer = encoder_decoder(base)
    writer = Decoder(model.eval(), tokenizer, Search(beams=beams, longest=8), max_pieces=64)
    summaries = writer.write(["is tea fine?", ""])
    assert writer.write(["is tea fine?"]) == summaries[:1]
    assert [len(own) for own in summaries] == [beams, beams]
    assert all(0 <= s.score <= 1 for own in summaries for s in own)


@pytest.mark.parametrize("make", [tiny_seq2seq.bart, tiny_seq2seq.t5])
def test_a_long_message_is_cut_inside(make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = encoder_decoder(make(tmp_path))  # type: ignore[operator]
    message = "I take a b c d e f g h i j k l m n o p q r s t u v w x y z every day. Is tea fine?"
    whole = tokenizer(message)["input_ids"]
    both = pieces_of(tokenizer, [message, "Is tea fine?"], 16)
    assert len(whole) > 16
    assert both["input_ids"][0].tolist() == [*whole[:12], *whole[-4:]]
    short = tokenizer("Is tea fine?")["input_ids"]
    assert both["input_ids"][1][both["attention_mask"][1].bool()].tolist() == short
    inputs: list[list[int]] = []
    monkeypatch.setattr(Decoder, "_generated", lambda _, read: inputs.append(read["input_ids"][0].tolist()))
    Decoder(model, tokenizer, Search(), max_pieces=16).write([message])
    assert inputs == [[*whole[:12], *whole[-4:]]]
