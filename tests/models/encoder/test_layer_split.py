"""Two halves of an encoder give what the whole gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from models.encoder.layer_split import Lower, Read, Upper, layers_of
from models.encoder.model import Encoder
from tests.models import tiny

SENTENCES = [["drug", "caused", "pain"], ["the", "x"], [], ["a"] * 40]


def upper_of(encoder: Encoder) -> Upper:
    """Of a copy: the halves take layers away."""
    return Upper(Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces), 1)


@pytest.mark.parametrize("make", [tiny.bert, tiny.roberta, tiny.mpnet])
def test_halves_one_after_the_other_are_the_whole(make: Callable[[Path], str], tmp_path: Path) -> None:
    encoder = Encoder.load(make(tmp_path), max_pieces=32)
    whole = encoder.word_vectors(SENTENCES)
    read = Lower(encoder, 1).read(SENTENCES)
    above = upper_of(encoder).word_vectors_above(read)
    assert len(read[3].middle) > 1
    for expected, own, upper in zip(whole, read, above, strict=True):
        assert torch.equal(expected, own.vectors)
        assert torch.equal(expected, upper)


def test_sixteen_bits_are_halved_too(tiny_bert: str, tmp_path: Path) -> None:
    encoder = Encoder.load(tiny_bert, dtype=torch.bfloat16)
    read = Lower(encoder, 1).read(SENTENCES)
    assert read[0].middle[0].dtype == torch.bfloat16
    for own, upper in zip(read, upper_of(encoder).word_vectors_above(read), strict=True):
        assert torch.equal(own.vectors, upper)


def test_an_upper_half_answers_alike_in_any_company(small: Encoder) -> None:
    read = Lower(small, 1).read(SENTENCES)
    upper = upper_of(small)
    together = upper.word_vectors_above(read)
    for sentence, expected in zip(read, together, strict=True):
        assert torch.equal(upper.word_vectors_above([sentence])[0], expected)


def test_the_lower_half_leaves_the_shared_encoder_as_it_was(small: Encoder) -> None:
    before = [list(layer._forward_hooks) for layer in layers_of(small.model)]
    lower = Lower(small, 1)
    lower.read(SENTENCES)
    assert [list(layer._forward_hooks) for layer in layers_of(small.model)] == before
    assert lower.read([]) == []


def test_gradients_reach_the_upper_layers_alone(small: Encoder) -> None:
    upper = upper_of(small)
    # The lower half is shared: nothing may be left in it.
    with torch.no_grad():
        (read,) = Lower(small, 1).read([["drug", "pain"]])
    upper.forward_states(read.middle).sum().backward()  # type: ignore[no-untyped-call]
    moved = {n for n, p in upper.model.named_parameters() if p.grad is not None and "layer" in n}
    assert moved
    assert all(".layer.1." in n for n in moved)


@pytest.mark.parametrize("below", [0, 2, 3])
def test_a_half_has_a_layer_and_leaves_one(small: Encoder, below: int) -> None:
    with pytest.raises(ValueError, match="lower half"):
        Lower(small, below)


def test_nothing_to_read_is_nothing(small: Encoder) -> None:
    assert upper_of(small).word_vectors_above(list[Read]()) == []
