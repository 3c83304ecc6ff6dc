"""Exported networks answer in other libraries as they do here, and each card's example runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from models.encoder.model import Encoder, encoder_of
from models.encoder.weights import ADAPTER
from models.export import folders
from models.export.card import Form
from models.export.folders import export
from models.export.networks import ExportError, exported_encoder, token_classifier
from models.idiom import LAST, LAST_TWO, IdiomModel
from models.ner.decoding import tags_of
from models.ner.heads import Head
from models.ner.model import HEAD, NerModel
from models.ner.tagging import NEVER
from models.normalization.context_refining import DCR, ISOLATED
from models.normalization.model import NormalizationModel
from models.releases.manifest import Release
from models.releases.store import bundled, describe, open_release
from models.releases.tensors import read_tensors
from models.types import LABELS
from tests.models.test_idiom import built
from tests.models.tiny_families import FAMILIES
from tests.tiny_releases import tiny_release

TEXTS = (
    "Zoloft made me so dizzy that I fell.",
    "rash",
    "could not sleep for 3 nights; brain zaps!",
    "",
    "🙂",
)
IDIOMS = (
    "a home run today", "Home-Runs, home  run", "HOME RUN", "chromehome run", "a big fish pond, big fishes",
    "the pain", "c++ is no c", "a IDhomerunID",
)  # fmt: skip
EXPRESSIONS = ["home run", "big fish", "big fish pond", "c++"]
NEAR = 1e-4


def of_bundle(task: str) -> Release:
    return open_release(bundled(task))


def exported(release: Release, tmp_path: Path, form: Form) -> Path:
    """The folder of an export."""
    if form == "onnx":
        for package in ("onnx", "onnxscript", "onnxruntime"):
            pytest.importorskip(package, reason="the extra `onnx` is not installed")
    export(release, tmp_path / "out", form)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    return tmp_path / "out"


def example_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the example of a card defines."""
    (code,) = re.findall(
        r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def by_sentence_transformers(folder: Path, texts: Sequence[str]) -> np.ndarray[Any, Any]:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  seconds to import

    vectors: np.ndarray[Any, Any] = SentenceTransformer(str(folder), device="cpu").encode(list(texts))
    return vectors


def by_onnx(folder: Path, texts: Sequence[str]) -> tuple[np.ndarray[Any, Any], Any]:
    """The answers of ONNX Runtime, and the pieces that they are for."""
    from onnxruntime import InferenceSession  # noqa: PLC0415  an extra
    from transformers import AutoTokenizer  # noqa: PLC0415  seconds to import

    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    pieces = tokenizer(list(texts), padding=True, truncation=True, return_tensors="np")
    session = InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    (answers,) = session.run(None, {name: pieces[name] for name in ("input_ids", "attention_mask")})
    return answers, pieces


def logits_of_first_pieces(release: Release, texts: Sequence[str]) -> torch.Tensor:
    """(pieces, tags) of the tagger's head with the flag of first pieces, text after text, by the tokenizer's
    pieces of each whole text; without the tag X.
    """
    model = NerModel.load(release)
    pieces = [placed.pieces for placed in model.encoder.pieces_at(texts)]
    hidden = torch.cat(model.encoder.encode_pieces(pieces))
    with torch.inference_mode():
        return without_x(model.head(hidden, torch.zeros(len(hidden))), model.tags)


def without_x(logits: Any, tags: Sequence[str]) -> torch.Tensor:
    return torch.as_tensor(logits)[:, [i for i, tag in enumerate(tags) if tag != "X"]]


@pytest.mark.slow
def test_the_encoder_of_normalization_gives_its_vectors_in_sentence_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = of_bundle("normalization")
    folder = exported(release, tmp_path, "sentence-transformers")
    texts = [*TEXTS, "pain " * 200]  # longer than the window
    expected = NormalizationModel.load(release).encoder.embed(texts).numpy()
    assert np.abs(by_sentence_transformers(folder, texts) - expected).max() < NEAR
    assert example_of(folder, monkeypatch)["vectors"].shape == (2, expected.shape[1])


@pytest.mark.slow
def test_the_encoder_of_normalization_gives_its_vectors_in_onnx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = of_bundle("normalization")
    folder = exported(release, tmp_path, "onnx")
    texts = [*TEXTS, "pain " * 200]
    expected = NormalizationModel.load(release).encoder.embed(texts).numpy()
    assert np.abs(by_onnx(folder, texts)[0] - expected).max() < NEAR
    assert example_of(folder, monkeypatch)["answers"].shape == (2, expected.shape[1])


@pytest.mark.slow
def test_the_tagger_gives_its_tags_in_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = of_bundle("ner")
    folder = exported(release, tmp_path, "transformers")
    found = example_of(folder, monkeypatch)
    named = {(f["word"], f["entity_group"]) for f in found["found"]}
    assert named == {("zoloft", "DRUG"), ("so", "ADE"), ("dizzy", "ADE")}  # by Viterbi "so dizzy"
    tag = found["tag"]
    texts = [text for text in TEXTS if text]
    pieces = tag.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = tag.model(**pieces).logits
    inside = ~torch.isin(pieces["input_ids"], torch.tensor(tag.tokenizer.all_special_ids))
    inside |= pieces["input_ids"] == tag.tokenizer.unk_token_id
    tags = [tag.model.config.id2label[i] for i in range(tag.model.config.num_labels)]
    assert "X" not in {tags[i] for i in logits[inside].argmax(-1)}
    expected = logits_of_first_pieces(release, texts)
    assert torch.allclose(without_x(logits[inside], tags), expected, atol=NEAR)


@pytest.mark.slow
def test_the_tagger_gives_its_tags_in_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = of_bundle("ner")
    folder = exported(release, tmp_path, "onnx")
    texts = [text for text in TEXTS if text]
    logits, pieces = by_onnx(folder, texts)
    inside = (pieces["attention_mask"] == 1) & ~np.isin(pieces["input_ids"], (101, 102))
    tags = NerModel.load(release).tags
    expected = logits_of_first_pieces(release, texts)
    assert torch.allclose(without_x(logits[inside], tags), expected, atol=NEAR)
    assert example_of(folder, monkeypatch)["answers"].shape[0::2] == (2, len(tags))


@pytest.mark.parametrize("form", ["sentence-transformers", pytest.param("onnx", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("base", "pooling"), [("tiny_bert", LAST), ("tiny_bert", LAST_TWO), ("tiny_roberta", LAST_TWO)]
)
def test_an_encoder_of_idioms_gives_its_vectors(
    base: str, pooling: str, form: Form, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    release = built(request.getfixturevalue(base), tmp_path, pooling=pooling, expressions=EXPRESSIONS)
    folder = exported(release, tmp_path, form)
    expected = IdiomModel.load(release).predict(IDIOMS).numpy()
    found = by_onnx(folder, IDIOMS)[0] if form == "onnx" else by_sentence_transformers(folder, IDIOMS)
    assert np.abs(found - expected).max() < NEAR


@pytest.mark.parametrize("base", ["tiny_bert", "tiny_mpnet"])
def test_the_shared_base_is_not_changed_by_an_export(
    base: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    release = tiny_release("normalization", request.getfixturevalue(base), tmp_path / "releases")
    before = encoder_of(release, packed=False)
    size = len(before.tokenizer), before.tokenizer.model_max_length
    folder = exported(release, tmp_path, "sentence-transformers")
    after = encoder_of(release, packed=False)
    assert (len(after.tokenizer), after.tokenizer.model_max_length) == size
    assert (
        np.abs(by_sentence_transformers(folder, ["the pain"]) - after.embed(["the pain"]).numpy()).max()
        < NEAR
    )


def test_the_encoder_of_a_coder_with_contexts_is_that_of_mentions(
    tiny: dict[str, Release], tmp_path: Path
) -> None:
    release, layer = tiny["normalization"], "encoder.layer.0.attention.self.query"
    for name in (ADAPTER, ISOLATED, DCR):
        pair = {f"{layer}.lora_a": torch.randn(2, 32), f"{layer}.lora_b": torch.randn(32, 2)}
        save_file(pair, tmp_path / name)
    manifest = release.manifest.model_copy(update={"files": describe(tmp_path)})
    expected = Encoder.load(manifest.base, max_pieces=64, adapter=tmp_path / ISOLATED)
    found = exported_encoder(Release(tmp_path, manifest, "with contexts"))
    assert torch.equal(found.embed(["the pain"]), expected.embed(["the pain"]))
    assert found.tokenizer.model_max_length == 64


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tagger_over_another_family_has_its_logits_or_is_refused(
    family: str, tiny: dict[str, Release], tmp_path: Path
) -> None:
    encoder, release = Encoder.load(FAMILIES[family](tmp_path)), tiny["ner"]
    if family == "modernbert":
        with pytest.raises(ExportError, match="a modernbert classifies tokens by further layers"):
            token_classifier(encoder, release)
        return
    head = Head(encoder.dimension, len(tags_of(LABELS))).eval()
    head.load_state_dict(read_tensors(release.file(HEAD)))
    ids = torch.tensor(encoder.with_special([encoder.split([["pain", "drug"]])[0].pieces]))
    with torch.inference_mode():
        logits = token_classifier(encoder, release)(ids).logits[0]
        hidden = encoder.model(ids).last_hidden_state[0]
        expected = without_x(head(hidden, torch.zeros(len(hidden))), tags_of(LABELS))
    assert torch.allclose(without_x(logits, tags_of(LABELS)), expected, atol=NEAR)
    assert logits[:, tags_of(LABELS).index("X")].max() == NEVER


def test_a_card_has_the_figures_with_definitions_and_baselines_and_the_licences(tmp_path: Path) -> None:
    release = of_bundle("ner")
    text = (exported(release, tmp_path, "transformers") / "README.md").read_text(encoding="utf-8")
    manifest = release.manifest
    for score in manifest.scores:
        assert (
            f"| {score.name} | {score.value:g} | {score.baseline:g} ({score.baseline_definition}) |" in text
        )
        assert score.definition in text
    assert all(f"- {source.name}: {source.licence}" in text for source in manifest.training_data)
    assert "Viterbi" in text and 'aggregation_strategy="first"' in text
    assert not re.search(r"\{\w+\}", text)


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger, folder = of_bundle("ner"), tmp_path / "there"
    with pytest.raises(ExportError, match="a release of relation is exported to nothing, but those of ner, "):
        export(of_bundle("relation"), tmp_path / "new", "onnx")
    with pytest.raises(ExportError, match="a release of ner is exported to transformers or onnx"):
        export(tagger, tmp_path / "new", "sentence-transformers")
    folder.mkdir()
    (folder / "mine.txt").touch()
    for path in (folder, folder / "mine.txt"):
        with pytest.raises(ExportError, match="is no empty folder"):
            export(tagger, path, "transformers")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ExportError, match=r"onnx is not installed; in the clone.*'\.\[onnx\]'"):
        export(tagger, tmp_path / "new", "onnx")
    monkeypatch.undo()

    def interrupted(*_: Any) -> str:
        raise OSError("the disk is full")

    monkeypatch.setattr(folders, "card", interrupted)
    with pytest.raises(OSError, match="full"):
        export(tagger, tmp_path / "new", "transformers")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
