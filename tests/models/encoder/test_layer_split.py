"""Lower and upper layers, run one after the other, return what the whole encoder returns."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from models.encoder.model import Encoder
from models.encoder.split.layer_split import EncodedSentence, SplitEncoder, UpperLayers
from models.encoder.split.layers import Layers
from tests.models.tiny_families import FAMILIES

SENTENCES = [["drug", "caused", "pain"], ["the", "x"], [], ["a"] * 40]


def upper_of(encoder: Encoder) -> UpperLayers:
    """The upper layers of a copy: removing the lower ones changes the model."""
    return UpperLayers(Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces), 1)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "albert"])
def test_lower_then_upper_layers_equal_the_whole_encoder(family: str, tmp_path: Path) -> None:
    encoder = Encoder.load(FAMILIES[family](tmp_path), max_pieces=32)
    whole = encoder.word_vectors(SENTENCES)
    encoded = SplitEncoder(encoder, 1).encode(SENTENCES)
    above = upper_of(encoder).word_vectors_above(encoded)
    assert len(encoded[3].split_states) > 1
    for expected, own, upper in zip(whole, encoded, above, strict=True):
        assert torch.equal(expected, own.vectors)
        assert torch.equal(expected, upper)


def test_a_model_in_16_bits_can_be_split(tiny_bert: str, tmp_path: Path) -> None:
    encoder = Encoder.load(tiny_bert, dtype=torch.bfloat16)
    encoded = SplitEncoder(encoder, 1).encode(SENTENCES)
    assert encoded[0].split_states[0].dtype == torch.bfloat16
    for own, upper in zip(encoded, upper_of(encoder).word_vectors_above(encoded), strict=True):
        assert torch.equal(own.vectors, upper)


def test_the_upper_layers_are_batch_invariant(small: Encoder) -> None:
    encoded = SplitEncoder(small, 1).encode(SENTENCES)
    upper = upper_of(small)
    together = upper.word_vectors_above(encoded)
    for sentence, expected in zip(encoded, together, strict=True):
        assert torch.equal(upper.word_vectors_above([sentence])[0], expected)


def test_splitting_leaves_the_encoder_and_gradients_reach_the_upper_layers_only(small: Encoder) -> None:
    before = [list(layer._forward_hooks) for layer in Layers(small.model).modules]
    lower = SplitEncoder(small, 1)
    lower.encode(SENTENCES)
    assert [list(layer._forward_hooks) for layer in Layers(small.model).modules] == before
    assert lower.encode([]) == []
    assert upper_of(small).word_vectors_above(list[EncodedSentence]()) == []
    upper = upper_of(small)
    # The lower layers are shared: they must get no gradients.
    with torch.no_grad():
        (encoded,) = SplitEncoder(small, 1).encode([["drug", "pain"]])
    upper.forward_states(encoded.split_states).sum().backward()  # type: ignore[no-untyped-call]
    trained = {n for n, p in upper.model.named_parameters() if p.grad is not None and "layer" in n}
    assert trained
    assert all(".layer.1." in n for n in trained)


@pytest.mark.parametrize("below", [0, 2, 3])
def test_a_split_needs_a_layer_below_and_one_above(small: Encoder, below: int) -> None:
    with pytest.raises(ValueError, match="cannot split"):
        SplitEncoder(small, below)
