"""Summaries in words: by the pointer decoder in any batch, and by tiny encoder-decoders of the hub."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.encoder.model import Encoder
from models.summarization import pointer_decoder
from models.summarization.beam_search import Search
from models.summarization.generation import (
    HubWriter,
    PointerWriter,
    hub_source,
    pieces_of,
    source_pieces,
    surface,
)
from models.summarization.model import load_hub
from models.summarization.pointer_decoder import Pointer, Shape
from tests.models.summarization import tiny_seq2seq

TEXTS = [
    "pain drug",
    "the pain of the drug is 7 times the pain",
    "x",
    "",
    "drug, drug!",
    "is the drug the pain ?",
]


def written(small: Encoder, beams: int = 3) -> PointerWriter:
    torch.manual_seed(9)
    tokenizer = small.tokenizer
    says = ["what", "is", "the", "drug", "?"]
    generated = [tokenizer.sep_token_id, *sorted({p for s in source_pieces(small, says) for p in s})]
    decoder = Pointer(
        Shape(32, layers=2, heads=2, inner=48, longest=16),
        pointer_decoder.embeddings_of(small.model),
        generated,
    )
    pointer_decoder.begin_as(decoder, small.model, [0, 1])
    pieces = pieces_of(tokenizer, generated)
    return PointerWriter(small, decoder.eval(), pieces, Search(beams=beams, longest=10))


@pytest.mark.parametrize("width", [8, 16, 64])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_text_has_the_same_summary_in_any_batch(
    small: Encoder, beams: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.summarization.generation.WIDTH", width)
    writer = written(small, beams)
    together = writer.write(TEXTS)
    assert [writer.write([t])[0] for t in TEXTS] == together
    assert list(reversed(writer.write(TEXTS[::-1]))) == together
    assert all(1 <= len(found) <= beams and all(0 <= w.score <= 1 for w in found) for found in together)
    assert writer.write([]) == []


def test_of_a_long_text_beginning_and_end_are_read(small: Encoder) -> None:
    pain, drug, the = small.tokenizer.convert_tokens_to_ids(["pain", "drug", "the"])
    whole, long = source_pieces(small, ["the " + "pain " * 28 + "drug", "the " + "pain " * 99 + "the drug"])
    assert whole == [the, *[pain] * 28, drug]
    assert long == [the, *[pain] * 27, the, drug]


def test_what_is_neither_generated_nor_in_the_text_is_never_written(small: Encoder) -> None:
    writer = written(small)
    (found,) = writer.write(["zebra quiz"])
    letters = set("zebraquiz" + "whatisthedrug?")
    assert all(set(w.text.lower()) - {" "} <= letters for w in found)


@pytest.mark.parametrize(
    ("pieces", "source", "wanted"),
    [
        ("what is met ##form ##in ?", "", "What is metformin?"),
        ("is metformin safe ?", "I take Metformin daily", "Is Metformin safe?"),
        ("treatments for mrsa ?", "about MRSA please", "Treatments for MRSA?"),
        ("treatments for mrsa ?", "ABOUT MRSA PLEASE", "Treatments for mrsa?"),
        ("is tea fine ?", "Tea. I like tea", "Is tea fine?"),
        ("sjogren ' s syndrome and ehlers - danlos", "", "Sjogren's syndrome and ehlers-danlos"),
        ("find physician ( s ) , at 0 . 5 % / day", "", "Find physician(s), at 0.5%/day"),
        ("cafe au lait", "my Caf\u00e9 au lait spots", "Caf\u00e9 au lait"),
        ("where can i read about it ?", "i have it", "Where can I read about it?"),
        ("##ness", "", "##ness"),
        ("", "x", ""),
    ],
)
def test_pieces_become_a_sentence_in_the_spelling_of_the_source(
    pieces: str, source: str, wanted: str
) -> None:
    assert surface(pieces.split(), source) == wanted


@pytest.mark.parametrize("make", [tiny_seq2seq.bart, tiny_seq2seq.t5])
@pytest.mark.parametrize("beams", [1, 3])
def test_an_encoder_decoder_of_the_hub_writes_the_same_each_time(
    make: object, beams: int, tmp_path: Path
) -> None:
    base = make(tmp_path)  # type: ignore[operator]
    model, tokenizer = load_hub(base)
    writer = HubWriter(model.eval(), tokenizer, Search(beams=beams, longest=8), max_pieces=64)
    found = writer.write(["is tea fine?", ""])
    assert writer.write(["is tea fine?"]) == found[:1]
    assert [len(f) for f in found] == [beams, beams]
    assert all(0 <= w.score <= 1 for f in found for w in f)


@pytest.mark.parametrize("make", [tiny_seq2seq.bart, tiny_seq2seq.t5])
def test_of_a_long_message_an_encoder_decoder_of_the_hub_reads_both_ends(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = load_hub(make(tmp_path))  # type: ignore[operator]
    message = "I take a b c d e f g h i j k l m n o p q r s t u v w x y z every day. Is tea fine?"
    whole = tokenizer(message)["input_ids"]
    both = hub_source(tokenizer, [message, "Is tea fine?"], 16)
    assert len(whole) > 16
    assert both["input_ids"][0].tolist() == [*whole[:12], *whole[-4:]]
    short = tokenizer("Is tea fine?")["input_ids"]
    assert both["input_ids"][1][both["attention_mask"][1].bool()].tolist() == short
    seen: list[list[int]] = []
    monkeypatch.setattr(HubWriter, "_written", lambda _, read: seen.append(read["input_ids"][0].tolist()))
    HubWriter(model, tokenizer, Search(), max_pieces=16).write([message])
    assert seen == [[*whole[:12], *whole[-4:]]]
