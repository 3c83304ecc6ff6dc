"""The program that trains a summarizer, and what its releases state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from models.releases.loading import load
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.summarization.reranker import FEATURES
from models.types import LABELS
from tests.models.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import write_corpus
from training.evaluation.summarization.measure import bundled_tagger
from training.summarization.__main__ import main
from training.summarization.data import Corpora, Pair
from training.summarization.release import SOURCES, known_words

#: The guard has the tagger of the bundled NER release, whose answers do not matter here.
pytestmark = [pytest.mark.usefixtures("tiny_bundled"), pytest.mark.matrix]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Few questions, and a NER release without training."""
    return write_corpus(tmp_path / "data")


def options(data: Path, base: str, out: Path, **more: Any) -> dict[str, Any]:
    plain = dict(layers=1, rank=2, trained_layers=1, pretraining=1, epochs=1, batch=2, negatives=2)
    return plain | dict(data=data, backbone=base, output=out, precision="float32", held_out=1) | more


def published(root: Path) -> Release:
    (path,) = (root / "summarization").iterdir()
    return open_release(path)


def test_the_program_makes_a_release_that_loads_and_states_how_it_was_trained(
    data: Path, tiny_bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(**options(data, tiny_bert, tmp_path / "out", run=tmp_path / "run", beams=0))
    release = published(tmp_path / "out")
    manifest = release.manifest
    assert manifest.kind.startswith("ECL: pointer decoder")
    files = {"adapter.safetensors", "decoder.safetensors", "focus_terms.tsv", "words.tsv"}
    assert files <= set(manifest.files)
    configuration = manifest.configuration
    searched = configuration["searched"]
    assert set(searched) == {"1", "4"}
    best = str(configuration["search"]["beams"])
    assert searched[best] == max(searched.values())
    assert len(configuration["data"]["validation"]) == 1
    split = json.loads((tmp_path / "run/split.json").read_text(encoding="utf-8"))
    assert configuration["data"] == configuration["data"] | split
    assert {s.name for s in manifest.training_data} == {SOURCES[n].name for n in ("meqsum", "rqe", "psytar")}
    scores = {s.name: s for s in manifest.scores}
    assert scores["unfaithful"].value == 0
    assert scores["rouge1"].baseline is not None
    loaded = load(release, dtype="float32")
    assert loaded.passes_canary()
    out = capsys.readouterr().out
    assert "validation: ROUGE-1" in out and "focus identification rate" in out


def test_a_decoder_that_needs_more_than_is_stored_is_refused_before_it_is_allocated(
    data: Path, tiny_bert: str, tmp_path: Path
) -> None:
    main(**options(data, tiny_bert, tmp_path / "out", beams=1))
    path = published(tmp_path / "out").path / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for change in ({"inner": 20_000}, {"dimension": 4096}, {"layers": 1000}):
        changed = manifest["configuration"] | {"decoder": manifest["configuration"]["decoder"] | change}
        path.write_text(json.dumps(manifest | {"configuration": changed}), encoding="utf-8")
        with pytest.raises(ReleaseError, match=r"the configuration needs \d+ numbers, \d+ are stored"):
            load(open_release(path.parent))


def test_without_an_epoch_a_release_has_the_weights_of_the_run_that_it_starts_from(
    data: Path, tiny_bert: str, tmp_path: Path
) -> None:
    given = options(data, tiny_bert, tmp_path / "out", run=tmp_path / "run", beams=1)
    main(**given)
    first = published(tmp_path / "out").manifest
    given |= {"start": tmp_path / "run", "run": None, "pretraining": 0, "epochs": 0, "replay": 0}
    main(**given | {"output": tmp_path / "again", "beams": 2})
    again = published(tmp_path / "again").manifest
    assert (again.configuration["search"]["beams"], again.configuration["searched"]) == (2, {})
    # The corpora of that run are named all the same.
    assert again.training_data == first.training_data
    assert again.configuration["start"] == first.configuration["training"] | {"trained_epochs": 2}
    for name in ("decoder.safetensors", "adapter.safetensors"):
        assert again.files[name].sha256 == first.files[name].sha256


@pytest.mark.parametrize("choose", ["templates", "ranked"])
def test_a_release_has_forms_where_they_are_asked_for(
    choose: str, data: Path, tiny_bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(**options(data, tiny_bert, tmp_path / "out", held_out=5, choose=choose))
    release = published(tmp_path / "out")
    configuration = release.manifest.configuration
    assert {"forms.tsv", "forms.safetensors"} <= set(release.manifest.files)
    assert len(configuration["ranker"]) == (0 if choose == "templates" else len(FEATURES))
    assert set(configuration["choice"]["scores"]) == {"pointer", "templates", "ranked"}
    assert ("ranked" if choose == "ranked" else "forms alone") in release.manifest.kind
    assert load(release, dtype="float32").passes_canary()
    assert "by the way of choosing" in capsys.readouterr().out


def test_a_ranker_requires_questions_to_be_fitted_on(data: Path, tiny_bert: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 5"):
        main(**options(data, tiny_bert, tmp_path / "out", choose="ranked"))


def test_a_release_names_the_written_questions_that_it_has_learned_from(
    data: Path, tiny_bert: str, tmp_path: Path
) -> None:
    given = options(data, tiny_bert, tmp_path / "out", run=tmp_path / "run", beams=1, limit=4)
    main(**given | {"teaching": True})
    release = published(tmp_path / "out")
    assert release.manifest.configuration["data"]["pairs"]["teaching"] == 4
    assert len(release.manifest.configuration["data"]["validation"]) == 2
    assert any("4 synthetic texts" in s.name for s in release.manifest.training_data)
    assert load(release, dtype="float32").passes_canary()


def test_a_hub_model_becomes_a_release_too(data: Path, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    base = tiny_seq2seq.t5(tmp_path / "base")
    main(**options(data, base, tmp_path / "out", held_out=0))
    loaded = load(published(tmp_path / "out"), dtype="float32")
    assert loaded.kind.startswith("ECL: hub decoder")
    assert loaded.passes_canary()


def test_words_of_two_summaries_and_those_of_forms_are_known() -> None:
    corpora = Corpora([Pair("a", "q", "Is tea bad?")], [Pair("b", "q", "Is TEAS good, is it?")], [], {})
    assert known_words(corpora, ["Why {}?"]) == ["is", "tea", "why"]


def test_training_requires_data() -> None:
    with pytest.raises(typer.BadParameter):
        main()


@pytest.mark.usefixtures("shipped_releases")
def test_the_tagger_of_the_guard_knows_all_labels() -> None:
    assert bundled_tagger().manifest.configuration["labels"] == list(LABELS)


def test_weights_to_start_with_are_refused_where_all_rankers_are_fitted_anew(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="fitted anew"):
        main(extractive=True, start=tmp_path, output=tmp_path / "out")
