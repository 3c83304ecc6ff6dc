"""Upper layers of one encoder over the lower ones of another of the same base."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.encoder.layers import layers_of, over
from models.encoder.model import Encoder
from models.encoder.packed.bert import PackedBert
from models.encoder.weights import WEIGHTS
from tests.models.tiny_families import FAMILIES

SENTENCES = [["drug", "caused", "pain"], ["the", "x"], [], ["a"] * 40]


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "albert"])
def test_layers_of_two_encoders_make_a_third_of_any_family(family: str, tmp_path: Path) -> None:
    base = FAMILIES[family](tmp_path)
    lower, upper = (Encoder.load(base, max_pieces=32) for _ in "ab")
    upper.model = changed(upper)
    expected = changed(lower)
    for i, layer in enumerate(layers_of(lower.model)[:1]):
        layers_of(expected)[i].load_state_dict(layer.state_dict())
    whole = Encoder(expected, lower.tokenizer, lower.max_pieces).word_vectors(SENTENCES)
    before = lower.word_vectors(SENTENCES)
    found = over(lower, upper, 1).word_vectors(SENTENCES)
    assert all(map(torch.equal, found, whole))
    assert not torch.equal(found[0], before[0])
    assert all(map(torch.equal, lower.word_vectors(SENTENCES), before))


def changed(encoder: Encoder) -> torch.nn.Module:
    """A copy of the model whose layers moved, all in the same way."""
    model: torch.nn.Module = copy.deepcopy(encoder.model)
    with torch.no_grad():
        for parameter in layers_of(model).parameters():
            parameter.add_(0.01)
    return model


def test_a_packed_encoder_takes_layers_without_a_copy_and_others_stay(tiny_bert: str, tmp_path: Path) -> None:
    stored = load_file(Path(tiny_bert) / "model.safetensors")
    trained = {n: t + 0.05 for n, t in stored.items() if ".layer." in n}
    save_file(trained, tmp_path / WEIGHTS)
    lower = Encoder.for_inference(tiny_bert, max_pieces=32)
    upper, same = (Encoder.for_inference(tiny_bert, max_pieces=32, weights=tmp_path / WEIGHTS) for _ in "ab")
    found = over(lower, upper, 1)
    assert isinstance(found.model, PackedBert)
    assert found.model.layers == [lower.model.layers[0], upper.model.layers[1]]
    assert found.model.embeddings is lower.model.embeddings
    alone = upper.word_vectors(SENTENCES)
    assert all(map(torch.equal, alone, same.word_vectors(SENTENCES)))
    theirs = over(Encoder.load(tiny_bert, max_pieces=32), upper_of(tiny_bert, tmp_path), 1)
    for own, other in zip(found.word_vectors(SENTENCES), theirs.word_vectors(SENTENCES), strict=True):
        assert torch.allclose(own, other, atol=1e-5)


def upper_of(base: str, folder: Path) -> Encoder:
    return Encoder.load(base, max_pieces=32, weights=folder / WEIGHTS)


@pytest.mark.parametrize("below", [0, 2, 3])
def test_a_layer_is_below_and_one_above(small: Encoder, below: int) -> None:
    with pytest.raises(ValueError, match="cannot put layers"):
        over(small, small, below)
