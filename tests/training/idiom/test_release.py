"""Whole runs on a tiny base, and what they build."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from models.encoder.added_tokens import ExtendedEmbedding
from models.idiom import LAST_TWO, TOKENS, IdiomModel
from models.loading import load
from models.releases.manifest import Release
from models.releases.store import open_release
from tests.models import tiny
from tests.training.idiom.corpus import EXPRESSIONS
from tests.training.recipes.runs import made
from training.common import UserError
from training.common.corpora import ENCODING, CorpusError
from training.evaluation.idiom import PRIMARY, STS, Pair
from training.idiom.release import CANARY
from training.idiom.train import IdiomTrainee
from training.teaching.batches import Idiom, Part, Use

pytestmark = pytest.mark.matrix


def only_release(root: Path) -> Release:
    (path,) = (root / "idiom").iterdir()
    return open_release(path)


def test_a_corpus_without_rows_is_refused(semeval: Path, tmp_path: Path) -> None:
    own = shutil.copytree(semeval, tmp_path / "corpora")
    path = own / "idioms/semeval22_train.csv"
    path.write_text(path.read_text(encoding=ENCODING).splitlines()[0] + "\n", encoding=ENCODING)
    with pytest.raises(CorpusError, match="has no row to train on in the language EN"):
        made("idiom", data=own, output=tmp_path, base=tiny.bert(tmp_path / "base"))


@pytest.mark.parametrize("case", [("bert", 0), ("roberta", 2)])
def test_a_run_builds_what_it_trained(
    semeval: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, int]
) -> None:
    base, rank = case
    monkeypatch.setattr(IdiomTrainee, "validate", lambda self, number: {PRIMARY: 0.1 * number, STS: 0.5})
    made(
        "idiom",
        data=semeval,
        output=tmp_path,
        base=getattr(tiny, base)(tmp_path / "base"),
        run=tmp_path / "run",
        pooling=LAST_TWO,
        epochs=2,
        rank=rank,
        lr=1e-2,
        batch=4,
    )
    release = only_release(tmp_path)
    weights = "adapter.safetensors" if rank else "encoder.safetensors"
    assert sorted(release.manifest.files) == sorted([weights, TOKENS])
    assert release.manifest.configuration["pooling"] == LAST_TWO
    assert release.manifest.configuration["expressions"] == sorted(EXPRESSIONS)
    assert [s.name for s in release.manifest.scores] == 2 * [PRIMARY, STS, "spearman_all"]
    assert len(release.manifest.canary.outputs) == len(CANARY) - 1
    model = load(release, dtype="float32").model
    assert isinstance(model, IdiomModel)
    assert isinstance(model.encoder.model.model.get_input_embeddings(), ExtendedEmbedding)


def test_nothing_is_built_where_no_epoch_is_kept_and_no_token_has_a_meaning(
    semeval: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tiny.bert(tmp_path / "base")
    for module in ("train", "release"):
        monkeypatch.setattr(f"training.idiom.{module}.MOST_STS_LOST", -3.0)
    with pytest.raises(UserError, match="of Spearman on STS: nothing is built"):
        made("idiom", data=semeval, output=tmp_path, base=base, epochs=1, rank=2, paraphrase=False)
    assert not (tmp_path / "idiom").exists()


def test_untrained_tokens_are_built_where_no_epoch_is_kept(
    semeval: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tiny.bert(tmp_path / "base")
    for module in ("train", "release"):
        monkeypatch.setattr(f"training.idiom.{module}.MOST_STS_LOST", -3.0)
    made("idiom", data=semeval, output=tmp_path, base=base, epochs=1, rank=2, lr=1e-2)
    adapter = load_file(only_release(tmp_path).file("adapter.safetensors"))
    halves = [tensor for name, tensor in adapter.items() if name.endswith("lora_b")]
    # The second half of an untrained adapter is zero.
    assert halves
    assert not any(bool(torch.any(tensor)) for tensor in halves)


def test_a_run_learns_from_the_teaching_corpus_alone(
    semeval: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(part: Part) -> list[Idiom]:
        name = {"train": "night owl", "held_out": "big fish"}[part]
        return [Idiom(name, "dark bird", ((Use("a ", name, ""), "late person"),), (Use("", name, ""),))]

    monkeypatch.setattr("training.idiom.train.idioms", written)
    validated: list[list[Pair]] = []

    def validate(trainee: IdiomTrainee, number: int) -> dict[str, float]:
        validated.append(trainee.validation)
        return {PRIMARY: 0.1 * number, STS: 0.5}

    monkeypatch.setattr(IdiomTrainee, "validate", validate)
    base = tiny.bert(tmp_path / "base")
    made("idiom", data=semeval, output=tmp_path, base=base, corpus="written", epochs=1, rank=2)
    manifest = only_release(tmp_path).manifest
    assert [source.licence for source in manifest.training_data] == ["CC0-1.0"]
    assert manifest.configuration["expressions"] == ["night owl"]
    assert [p.first for p in validated[-1] if p.idiom] == ["a big fish", "a big fish", "big fish", "big fish"]
