"""Releases of the summarizer: trained by recipe, written, loaded, and made again with today's tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from models.encoder.model import Encoder
from models.loading import load
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.summarization.extraction.extractor import Extractor
from models.types import LABELS
from tests.training.recipes.runs import made
from tests.training.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import SMALL, write_corpus
from training.common.build import build_release
from training.evaluation.summarization.measure import bundled_tagger
from training.recipes.stages import Place
from training.summarization.decoder import Decoder
from training.summarization.release import CANARY, EXTRACTING, refreshed

#: The guard has the tagger of the bundled NER release, whose answers do not matter here.
pytestmark = pytest.mark.usefixtures("tiny_bundled")
TABLES = {"focus_terms.tsv", "focus_drugs.tsv"}
RANKERS = {"focus_ranker.tsv", "answer_ranker.tsv", "insertion_ranker.tsv", "key_words.safetensors"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("questions") / "data")


@pytest.fixture(scope="module")
def release(
    tiny_bundled: None, tiny_bert: str, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Release:
    out = tmp_path_factory.mktemp("extractive")
    return made("summarization", data=data, output=out, base=tiny_bert, limit=8)


def test_a_release_extracts_and_states_what_it_learnt_from(release: Release) -> None:
    manifest = release.manifest
    assert set(manifest.files) == RANKERS | TABLES
    assert manifest.configuration["questions"] == 16
    assert [source.licence for source in manifest.training_data] == ["CC BY 4.0", "CC0-1.0"]
    scores = {s.name: s.value for s in manifest.scores}
    assert scores == scores | {"extractive": 1.0, "unfaithful": 0.0}
    loaded = load(release, dtype="float32")
    (short,) = loaded.model.predict(["Tea, please. I would like to know if tea is bad for me. Is it fine?"])
    assert short.text.endswith("?")


def test_it_is_made_again_with_todays_tables_and_without_an_editor(
    release: Release, data: Path, tmp_path: Path
) -> None:
    copied = shutil.copytree(release.path, tmp_path / "old")
    (copied / "edit_ranker.tsv").write_text("feature\tweight\nkept\t1\n", encoding="utf-8")
    (copied / "focus_terms.tsv").write_text("term\nold\n", encoding="utf-8")
    stated = {"configuration": release.manifest.configuration | {"margin": 1.0, "limits": {}}}
    old = Release(copied, release.manifest.model_copy(update=stated), release.version)
    again = refreshed(old, Place(data, tmp_path / "new", torch.device("cpu")))
    assert again.manifest.files == release.manifest.files
    assert again.manifest.canary == release.manifest.canary
    assert again.manifest.kind == EXTRACTING
    assert again.manifest.configuration == release.manifest.configuration | {"like": release.version}


def test_weights_of_other_features_are_no_release(release: Release, tmp_path: Path) -> None:
    copied = shutil.copytree(release.path, tmp_path / "changed")
    release = Release(copied, release.manifest, release.version)
    path = release.path / "focus_ranker.tsv"
    path.write_text(path.read_text(encoding="utf-8").replace("cosine", "sine"), encoding="utf-8")
    with pytest.raises(ReleaseError, match="finite weight"):
        Extractor.load(release, Encoder.load("mini"))


def test_an_encoder_alone_is_a_release_that_picks_a_whole_sentence(tmp_path: Path, tiny_bert: str) -> None:
    """The first releases had no rankers."""
    (tmp_path / "files").mkdir()
    release = build_release(
        tmp_path / "files", task="summarization", base=tiny_bert, base_sha256=None, root=tmp_path / "out",
        kind="extractive", configuration={"max_pieces": 256}, training_data=[], canary=CANARY,
        scores=lambda model: [],
    )  # fmt: skip
    (short,) = load(release, dtype="float32").model.predict(["Tea. Hi, can you tell me is it fine?"])
    assert short.text == "Hi, can you tell me is it fine?"


def decoder(data: Path, out: Path, base: str, **more: Any) -> Release:
    return made("summarization", data=data, output=out, base=base, **SMALL | more)


@pytest.mark.matrix
def test_the_papers_method_is_measured_and_states_how_it_was_trained_and_is_not_served(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "base").mkdir()
    release = decoder(data, tmp_path / "out", tiny_seq2seq.bart(tmp_path / "base"), run=tmp_path / "run")
    manifest = release.manifest
    assert manifest.kind.startswith("ECL")
    assert set(manifest.files) == {"changed.safetensors"}
    training = manifest.configuration["training"]
    assert (training["negatives"], len(training["data"])) == (3, 64)
    assert [s.licence for s in manifest.training_data] == ["CC BY 4.0"]
    scores = {s.name: s for s in manifest.scores}
    assert scores["rouge1"].baseline is not None
    assert scores["extractive"].value == 0
    with pytest.raises(ReleaseError, match="not served"):
        load(release)
    assert refreshed(release, Place(data, tmp_path / "new", torch.device("cpu"))) is release
    out = capsys.readouterr().out
    assert "validation: ROUGE-1" in out and "focus identification rate" in out
    path = release.path / "manifest.json"
    stated = json.loads(path.read_bytes()) | {"base": tiny_seq2seq.t5(tmp_path / "base"), "base_sha256": None}
    path.write_text(json.dumps(stated), encoding="utf-8")
    with pytest.raises(ReleaseError, match="does not hold weights of"):
        Decoder.load(open_release(release.path))


def test_a_decoder_over_an_encoder_alone_is_refused(data: Path, tiny_bert: str, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="an encoder-decoder is needed"):
        decoder(data, tmp_path, tiny_bert)


@pytest.mark.usefixtures("shipped_releases")
def test_the_tagger_of_the_guard_knows_all_labels() -> None:
    assert bundled_tagger().manifest.configuration["labels"] == list(LABELS)
