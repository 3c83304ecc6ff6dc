"""Idiom-aware vectors: marked expressions, embeddings of added tokens, both poolings, and releases."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from models.encoder.added_tokens import extended_embedding
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.idiom import (
    LAST,
    LAST_TWO,
    TOKENS,
    IdiomModel,
    LastTwoLayers,
    Marker,
    add_tokens,
    with_pooling,
)
from models.loading import as_json, load
from models.releases.manifest import File, Manifest, Release
from models.releases.store import build, describe

TEXTS = [
    "the pain",
    "a home run today",
    "pain",
    "it was the drug of the day, they said, and then no more of it",
]


@pytest.fixture(params=["tiny_bert", "tiny_roberta"])
def own(request: pytest.FixtureRequest) -> Encoder:
    """An encoder of a tiny base with a model of its own."""
    encoder = Encoder.load(request.getfixturevalue(request.param))
    return Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A home run.", "A IDhomerunID."),
        ("Home-Runs, home  run", "IDhomerunID, IDhomerunID"),
        ("chromehome run", "chromehome run"),
        ("home runner", "home runner"),
        ("a big fish pond", "a IDbigfishpondID"),
        ("big fishes", "IDbigfishID"),
        ("it's c++ time", "it's c++ time"),
        ("nothing", "nothing"),
        ("", ""),
    ],
)
def test_an_expression_is_replaced_where_it_occurs_as_whole_words(text: str, expected: str) -> None:
    assert Marker(["home run", "big fish", "big fish pond"]).mark(text) == expected


def test_an_expression_with_a_hyphen_is_found_with_a_space_too() -> None:
    """Else the first text with one ended the training: a fifth of the Portuguese expressions have hyphens."""
    marker = Marker(["caixa-forte", "große  Klappe", "swan song"])
    assert marker.mark("a Caixa-Forte, caixa forte") == "a IDcaixa-forteID, IDcaixa-forteID"
    assert marker.mark("GROSSE KLAPPE, Große Klappe") == "GROSSE KLAPPE, IDgroßeKlappeID"
    assert marker.mark("a \u017fwan song") == "a IDswansongID"


def test_an_added_token_is_one_piece_with_its_row_and_other_texts_keep_their_vectors(own: Encoder) -> None:
    before = own.embed(TEXTS)
    add_tokens(own, ["IDhomerunID", "IDbigfishID"], torch.randn(2, 32))
    extended = extended_embedding(own)
    assert own.model.get_input_embeddings() is extended
    pieces = own.tokenizer(["IDbigfishID", "pain"], add_special_tokens=False)["input_ids"]
    assert len(pieces[0]) == 1
    assert torch.equal(extended(torch.tensor(pieces[:1]))[0, 0], extended.rows[1])
    assert torch.equal(extended(torch.tensor(pieces[1:])), extended.base(torch.tensor(pieces[1:])))
    assert torch.equal(own.embed(TEXTS), before)


def test_tokens_that_do_not_fit_are_refused(own: Encoder) -> None:
    with pytest.raises(ValueError, match=r"2 tokens of dimension 32 have rows \(1, 32\)"):
        add_tokens(own, ["IDaID", "IDbID"], torch.zeros(1, 32))
    with pytest.raises(ValueError, match="twice in the list"):
        add_tokens(own, ["IDaID", "IDaID"], torch.zeros(2, 32))


def pooled_without_batch(encoder: Encoder, text: str) -> Tensor:
    """The mean over pieces of the mean of the last two hidden states, of one text without padding."""
    ids = torch.tensor([encoder.tokenizer(text)["input_ids"]])
    with torch.inference_mode():
        states = encoder.model(input_ids=ids, output_hidden_states=True).hidden_states
    return torch.nn.functional.normalize(((states[-1] + states[-2]) / 2)[0].mean(0), dim=0)


def test_the_last_two_layers_are_pooled_without_padding(own: Encoder) -> None:
    vectors = with_pooling(own, LAST_TWO).embed(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert torch.allclose(vector, pooled_without_batch(own, text), atol=1e-5)
    assert (vectors - own.embed(TEXTS)).abs().max() > 1e-3


def test_the_pooling_of_an_encoder_can_be_changed_back(own: Encoder) -> None:
    both = with_pooling(own, LAST_TWO)
    assert isinstance(with_pooling(both, LAST_TWO).model.model, type(own.model))
    assert not isinstance(with_pooling(both, LAST).model, LastTwoLayers)
    assert torch.equal(with_pooling(both, LAST).embed(TEXTS), own.embed(TEXTS))
    with pytest.raises(ValueError, match="no pooling 'first': last, last_two"):
        with_pooling(own, "first")


def manifest(base: str, folder: Path, **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "task": "idiom",
        "kind": "a test",
        "base": base,
        "base_sha256": base_digest(base),
        "files": {name: File.model_dump(file) for name, file in describe(folder).items()},
        "configuration": {"max_pieces": 64, "pooling": LAST_TWO, "expressions": []},
        "scores": [],
        "training_data": [],
        "code_commit": "unknown",
        "canary": {"inputs": [], "outputs": []},
    }
    return Manifest.model_validate(fields | changes)


def built(base: str, tmp_path: Path, **configuration: Any) -> Release:
    folder = tmp_path / "source"
    folder.mkdir()
    layer = "encoder.layer.0.attention.self.query"
    torch.manual_seed(1)
    pair = {f"{layer}.lora_a": torch.randn(2, 32), f"{layer}.lora_b": torch.randn(32, 2)}
    save_file(pair, folder / "adapter.safetensors")
    if configuration.get("expressions"):
        save_file({"rows": torch.randn(len(configuration["expressions"]), 32)}, folder / TOKENS)
    settings = {"max_pieces": 64, "pooling": LAST_TWO, "expressions": []} | configuration
    draft = manifest(base, folder, configuration=settings)
    model = IdiomModel.load(Release(folder, draft, "draft"))
    canary = {"inputs": TEXTS, "outputs": as_json(model.predict(TEXTS))}
    return build(folder, manifest(base, folder, configuration=settings, canary=canary), tmp_path / "root")


@pytest.mark.parametrize(
    ("base", "pooling"), [("tiny_bert", LAST_TWO), ("tiny_bert", LAST), ("tiny_roberta", LAST_TWO)]
)
def test_a_release_loads_passes_its_canary_check_and_marks_idioms(
    base: str, pooling: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    expressions = ["home run", "big fish"]
    release = built(request.getfixturevalue(base), tmp_path, pooling=pooling, expressions=expressions)
    loaded = load(release, dtype="float32")
    assert (loaded.task, loaded.passes_canary()) == ("idiom", True)
    vectors = loaded.model.predict(["a home run", "a IDhomerunID", "a big fish", "a big fish"])
    assert isinstance(vectors, Tensor)
    assert torch.allclose(vectors.norm(dim=1), torch.ones(4), atol=1e-5)
    assert torch.equal(vectors[0], vectors[1])
    assert torch.equal(vectors[2], vectors[3])
    assert not torch.allclose(vectors[0], vectors[2], atol=1e-3)


def test_a_release_without_expressions_needs_no_rows(tiny_bert: str, tmp_path: Path) -> None:
    release = built(tiny_bert, tmp_path)
    assert list(release.manifest.files) == ["adapter.safetensors"]
    model = load(release, dtype="float32").model
    assert isinstance(model, IdiomModel)
    assert not torch.allclose(model.predict(TEXTS), model.untrained().predict(TEXTS), atol=1e-3)
    plain_base = with_pooling(Encoder.load(tiny_bert, max_pieces=64), LAST_TWO)
    assert torch.equal(model.untrained().predict(TEXTS), plain_base.embed(TEXTS))
    assert tuple(model.predict([]).shape) == (0, 32)


def test_a_canary_records_the_cosines_of_consecutive_vectors() -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    assert as_json(vectors) == [0.6, 0.8]
    with pytest.raises(TypeError):
        as_json(torch.zeros(3))
    with pytest.raises(TypeError):
        as_json(object())
