"""Whole runs of `python -m training.acronym` on a tiny base."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import typer

from models.acronym.model import AcronymModel
from models.acronym.prototypes import WRITTEN, Mixture, PrototypeEntry
from models.acronym.scorers import TrainedScorer
from models.encoder.weights import ADAPTER, WEIGHTS
from models.loading import load
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.releases.tensors import read_tensors
from tests.training.acronym.corpus import DICTIONARY, write_dictionary
from training.acronym import assemble
from training.acronym.__main__ import main
from training.acronym.assemble import kind_of, sources_of
from training.acronym.settings import Settings
from training.teaching.batches import AcronymContext


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dictionary(tmp_path_factory.mktemp("dictionary") / "dictionary.tsv")


def only_release(root: Path) -> Release:
    (path,) = (root / "acronym").iterdir()
    return open_release(path)


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The teaching corpus has a sense that no other source has, and an acronym of its own."""
    written = [
        AcronymContext("PD", "panda dance", "he saw a PD at the zoo"),
        AcronymContext("PD", "pain-drug", "the PD helped her knee"),
        AcronymContext("NEW", "never ever well", "she was NEW for a week"),
    ]
    monkeypatch.setattr(assemble, "acronym_contexts", lambda part: written if part == "train" else [])


@pytest.mark.usefixtures("contexts")
def test_a_whole_run_writes_a_release_that_answers_and_is_scored(
    tiny_bert: str, folder: Path, dictionary: Path, tmp_path: Path
) -> None:
    main(
        data=folder,
        dictionary=dictionary,
        output=tmp_path / "out",
        base=tiny_bert,
        corpora="sdu22_scientific",
        run=tmp_path / "run",
        layers=1,
        epochs=1,
        batch=8,
        max_pieces=64,
        held_out=0.34,
        precision="float32",
    )
    release = only_release(tmp_path / "out")
    check_manifest(release)
    model = load(release, dtype="float32").model
    assert isinstance(model, AcronymModel)
    check_answers(model)
    configuration = release.manifest.configuration
    assert set(configuration["mixture"]) == set(Mixture._fields)
    # UNSURED SENSE is a class of CASI and never offered as a long form.
    assert all(use.long_form != "UNSURED SENSE" for use in offered_prototypes(model))
    assert model.dictionary["PD"] == (*DICTIONARY["PD"], "panda dance", "posterior descending")
    assert model.dictionary["NEW"] == ("never ever well",)
    written = [(u.long_form, u.rows) for u in offered_prototypes(model) if u.source == WRITTEN]
    assert sorted(written) == [("never ever well", 0), ("pain drug", 0), ("panda dance", 0)]
    # Long forms of CASI that this dictionary lacks.
    assert model.dictionary["PE"] == ("pulmonary embolism",)
    assert "FISH" in model.dictionary["FISH"]
    check_like(release, folder, dictionary, tmp_path / "like")


def check_like(release: Release, data: Path, dictionary: Path, output: Path) -> None:
    """A release made from the network of another one, with the same dictionary and corpora, is as the other
    one.
    """
    main(data=data, dictionary=dictionary, output=output, like=str(release.path))
    again = only_release(output)
    assert {n: f.sha256 for n, f in again.manifest.files.items() if n != "prototypes.safetensors"} == {
        n: f.sha256 for n, f in release.manifest.files.items() if n != "prototypes.safetensors"
    }
    ours_at, theirs_at = (read_tensors(r.file("prototypes.safetensors"))["vectors"] for r in (again, release))
    assert torch.allclose(ours_at, theirs_at, atol=1e-3)
    ours, theirs = again.manifest.configuration, release.manifest.configuration
    assert ours["training"] == theirs["training"]
    assert ours["mixture"] == theirs["mixture"]


def test_a_release_without_a_network_is_not_taken_further(
    tiny_bert: str, folder: Path, dictionary: Path, tmp_path: Path
) -> None:
    main(output=tmp_path / "zero", base=tiny_bert, dictionary=dictionary, zero_shot=True)
    with pytest.raises(ReleaseError, match="no trained network"):
        main(
            data=folder,
            output=tmp_path,
            dictionary=dictionary,
            like=str(only_release(tmp_path / "zero").path),
        )


def check_manifest(release: Release) -> None:
    """Files, scores, what it was trained on, and its settings."""
    files = {
        "dictionary.tsv",
        "head.safetensors",
        "prototypes.tsv",
        "frequencies.tsv",
        "cues.tsv",
        "prototypes.safetensors",
        ADAPTER,
    }
    assert set(release.manifest.files) == files
    scores = {"accuracy", "macro_f1", "authors_f1", "accuracy_defined"}
    at_coverage = {"accuracy_at_90", "accuracy_at_80", "accuracy_at_60"}
    assert {s.name for s in release.manifest.scores} == scores | at_coverage
    names = " ".join(source.name for source in release.manifest.training_data)
    taught = "teaching corpus of pvstream, 3 synthetic texts"
    assert all(name in names for name in ("SDU@AAAI-22", "CASI", "ADE", taught))
    configuration = release.manifest.configuration
    assert configuration["casi_rows"] == {"held_out": 0.3, "seed": 0}
    assert configuration["training"]["corpora"] == ["sdu22_scientific"]


def check_answers(model: AcronymModel) -> None:
    """For an acronym with several senses and one with a single sense."""
    assert isinstance(model.scorer, TrainedScorer)
    expansions, single = model.predict(["a pain with PD today; ONE and XYZ too", "ONE only"])
    assert [(e.short_form, e.source) for e in expansions] == [("PD", "dictionary"), ("ONE", "dictionary")]
    assert expansions[0].long_form in model.dictionary["PD"]
    assert 1 / 5 <= expansions[0].score <= 1
    assert (expansions[1].long_form, expansions[1].score) == ("only this", 1.0)
    assert single[0].score == 1.0


def offered_prototypes(model: AcronymModel) -> list[PrototypeEntry]:
    assert isinstance(model.scorer, TrainedScorer)
    assert model.scorer.prototypes is not None
    return [
        u for u in model.scorer.prototypes.entries if u.long_form in model.dictionary.get(u.short_form, ())
    ]


def test_the_papers_network_is_built_without_prototypes(
    tiny_bert: str, folder: Path, dictionary: Path, tmp_path: Path
) -> None:
    main(
        data=folder,
        dictionary=dictionary,
        output=tmp_path / "out",
        base=tiny_bert,
        corpora="sdu22_scientific",
        objective="m",
        usage_examples=False,
        layers=1,
        rank=0,
        epochs=1,
        max_pieces=64,
        held_out=0.25,
        precision="float32",
    )
    release = only_release(tmp_path / "out")
    assert set(release.manifest.files) == {"dictionary.tsv", "head.safetensors", WEIGHTS}
    assert "(m)" in release.manifest.kind
    assert [s.name for s in release.manifest.training_data] == [
        "SDU@AAAI-22 acronym disambiguation, scientific English, training part"
    ]
    ((expansion, *_),) = load(release, dtype="float32").model.predict(["a pain with PD today"])
    assert expansion.long_form in DICTIONARY["PD"]


def test_a_run_learns_from_no_corpus_for_non_commercial_use_unless_it_is_named() -> None:
    assert Settings().corpus_names == ("casi", "ade")
    assert not any("NC" in source.licence for source in sources_of(Settings(), ("casi", "ade"), 0))


def test_sources_are_named_once_whatever_rows_are_made_of_them() -> None:
    settings = Settings(corpora="written,phrases", validated="ade_defined")
    names = [source.name for source in sources_of(settings, (), 0)]
    assert [name.split(" ")[0] for name in names] == ["ADE", "teaching"]


def test_training_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="training needs --data"):
        main(output=tmp_path)


def test_a_kind_names_an_m_network_only_where_there_is_one() -> None:
    shipped = Settings(layers=0)
    assert kind_of(shipped, with_prototypes=True) == (
        "definitions in the text, else the cosine of sentence and long form, letter features, prototypes, "
        "cue words"
    )
    assert "by a trained encoder" in kind_of(Settings(), with_prototypes=True)
    paper = Settings(objective="m")
    assert kind_of(paper, with_prototypes=False) == "definitions in the text, else an m-network (m)"
