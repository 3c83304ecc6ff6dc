"""The program that trains a summarizer, and what its releases state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from models.loading import load
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
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


def built(root: Path) -> Release:
    (path,) = (root / "summarization").iterdir()
    return open_release(path)


def test_the_program_makes_a_release_that_loads_and_states_how_it_was_trained(
    data: Path, tiny_bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(**options(data, tiny_bert, tmp_path / "out", run=tmp_path / "run"))
    release = built(tmp_path / "out")
    manifest = release.manifest
    assert manifest.kind.startswith("ECL: pointer decoder")
    files = {"adapter.safetensors", "decoder.safetensors", "focus_terms.tsv", "words.tsv"}
    assert files <= set(manifest.files)
    configuration = manifest.configuration
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
    main(**options(data, tiny_bert, tmp_path / "out"))
    path = built(tmp_path / "out").path / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for change in ({"inner": 20_000}, {"dimension": 4096}, {"layers": 1000}):
        changed = manifest["configuration"] | {"decoder": manifest["configuration"]["decoder"] | change}
        path.write_text(json.dumps(manifest | {"configuration": changed}), encoding="utf-8")
        with pytest.raises(ReleaseError, match=r"the configuration needs \d+ numbers, \d+ are stored"):
            load(open_release(path.parent))


def test_a_hub_model_becomes_a_release_too(data: Path, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    base = tiny_seq2seq.t5(tmp_path / "base")
    main(**options(data, base, tmp_path / "out", held_out=0))
    loaded = load(built(tmp_path / "out"), dtype="float32")
    assert loaded.kind.startswith("ECL: hub decoder")
    assert loaded.passes_canary()


def test_words_of_two_summaries_are_known() -> None:
    corpora = Corpora([Pair("a", "q", "Is tea bad?")], [Pair("b", "q", "Is TEAS good, is it?")], [], {})
    assert known_words(corpora) == ["is", "tea"]


def test_training_requires_data() -> None:
    with pytest.raises(typer.BadParameter):
        main()


@pytest.mark.usefixtures("shipped_releases")
def test_the_tagger_of_the_guard_knows_all_labels() -> None:
    assert bundled_tagger().manifest.configuration["labels"] == list(LABELS)
