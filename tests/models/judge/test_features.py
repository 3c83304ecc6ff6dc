"""Vectors of mentions: means over what they say, in any batch the same, and of long texts in parts."""

from __future__ import annotations

import pytest
import torch

from models.encoder.model import Encoder
from models.judge import features
from models.judge.features import Features, HowToRead, pieces_in
from models.types import Case, Mention, Stated

PLAIN = HowToRead(prefix=False)


@pytest.fixture(scope="module")
def encoder(tiny_mpnet: str) -> Encoder:
    return Encoder.load(tiny_mpnet, max_pieces=64)


def case(text: str, *names: str, drugs: tuple[str, ...] = (), indication: str | None = None) -> Case:
    mentions = tuple(Mention(text.index(n), text.index(n) + len(n), n, "ADE", 0.9) for n in names)
    return Case(text, mentions, Stated(drugs, indication))


def only(found: list[list[torch.Tensor | None]]) -> torch.Tensor:
    ((vector,),) = found
    assert vector is not None
    return vector


def test_a_vector_is_three_means(encoder: Encoder) -> None:
    one = case("the drug. a rash came. so it was", "rash")
    placed = encoder.pieces_at([one.text])[0]
    with torch.inference_mode():
        (states,) = encoder.encode_pieces([placed.pieces])
    own, sentence = pieces_in(placed, 12, 16), pieces_in(placed, 10, 22)
    assert own is not None and sentence is not None
    means = [states[own.first : own.last], states[sentence.first : sentence.last], states]
    expected = torch.cat([m.mean(0) for m in means])
    assert torch.allclose(only(Features(encoder, PLAIN).of([one])), expected, atol=1e-6)
    characters = Features(encoder, HowToRead("characters", prefix=False))
    assert torch.allclose(only(characters.of([one]))[32:64], states.mean(0), atol=1e-6)


def test_drug_and_indication_are_read_before_the_text(encoder: Encoder) -> None:
    bare, said = case("a rash came", "rash"), case("a rash came", "rash", drugs=("zoloft",), indication="flu")
    reading = Features(encoder, HowToRead())
    assert reading._prefix(said) == "medicine: zoloft. taken for: flu."
    assert not torch.allclose(only(reading.of([bare])), only(reading.of([said])), atol=1e-3)
    plain = Features(encoder, PLAIN)
    assert torch.equal(only(plain.of([bare])), only(plain.of([said])))
    assert torch.equal(only(plain.of([bare])), only(reading.of([bare])))


def test_a_long_prefix_leaves_room_for_the_text(encoder: Encoder) -> None:
    one = case("a rash came", "rash", drugs=("x" * 256,) * 8)
    assert only(Features(encoder, HowToRead()).of([one])).isfinite().all()


def test_a_mention_has_the_same_vector_in_any_batch(encoder: Encoder) -> None:
    one, other = case("the pain is bad", "pain"), case("no rash and no pain at all, said the doctor", "rash")
    reading = Features(encoder, HowToRead())
    assert torch.allclose(only(reading.of([one])), reading.of([other, one, other])[1][0], atol=1e-5)  # type: ignore[arg-type]
    assert reading.of([]) == []


def test_a_text_is_encoded_once_for_all_its_mentions(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    real = Encoder.hidden

    def counted(self: Encoder, sequences: list[list[int]]):  # type: ignore[no-untyped-def]
        encoded.append(len(sequences))
        return real(self, sequences)

    monkeypatch.setattr(Encoder, "hidden", counted)
    Features(encoder, PLAIN).of([case("a rash, pain and ache", "rash", "pain", "ache"), case("pain", "pain")])
    assert encoded == [2]


def test_long_texts_are_read_in_parts_of_whole_sentences(encoder: Encoder) -> None:
    text = " ".join(f"the pain {letter} came." for letter in "abcdefghijklmnopqrst")
    placed = encoder.pieces_at([text])[0]
    mentions = tuple(
        Mention(i, i + 4, "pain", "ADE", 0.9) for i in range(len(text)) if text.startswith("pain", i)
    )
    found = Features(encoder, PLAIN)._parts(text, placed, [], mentions)
    assert 1 < len(found) < len(mentions) / 2
    assert sorted(number for part in found for number, _, _ in part.mentions) == list(range(20))
    ends = {0, len(placed.pieces)} | {i + 1 for i, (a, b) in enumerate(placed.places) if text[a:b] == "."}
    for part in found:
        first = -part.skipped
        assert len(part.pieces) <= 62
        assert {first, first + len(part.pieces)} <= ends
    assert all(v is not None for v in Features(encoder, PLAIN).of([Case(text, mentions)])[0])


def test_the_middle_of_an_endless_sentence_is_read(encoder: Encoder) -> None:
    text = "z " * 200 + "rash " + "y " * 200
    assert only(Features(encoder, PLAIN).of([case(text, "rash")])).isfinite().all()


def test_no_more_than_so_many_parts_are_read(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "MOST_PARTS", 1)
    text = "a rash. " + "z " * 80 + ". the pain."
    first, last = Features(encoder, PLAIN).of([case(text, "rash", "pain")])[0]
    assert first is not None and last is None


def test_a_mention_without_pieces_has_no_vector(encoder: Encoder) -> None:
    one = Case("a \u200b b", (Mention(2, 3, "\u200b", "ADE", 0.9),))
    assert Features(encoder, PLAIN).of([one]) == [[None]]
