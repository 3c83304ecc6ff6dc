"""Whole runs of the task on a tiny base, and what they build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from models.acronym.model import AcronymModel
from models.acronym.prototypes import WRITTEN, Mixture
from models.acronym.scorers import TrainedScorer
from models.encoder.weights import ADAPTER, WEIGHTS
from models.loading import load
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from tests.training.acronym.corpus import DICTIONARY
from tests.training.recipes.runs import made
from training.acronym.release import refreshed
from training.acronym.settings import Settings
from training.acronym.train import AcronymTrainee
from training.common.corpora import CorpusError
from training.recipes.stages import Place

SMALL: dict[str, Any] = {"layers": 1, "epochs": 1, "pieces": 64, "precision": "float32"}
PROTOTYPES = {"prototypes.tsv", "prototypes.safetensors", "frequencies.tsv", "cues.tsv"}
pytestmark = pytest.mark.usefixtures("contexts")


def expander(release: Release) -> tuple[AcronymModel, TrainedScorer]:
    model = load(release, dtype="float32").model
    assert isinstance(model, AcronymModel)
    assert isinstance(model.scorer, TrainedScorer)
    return model, model.scorer


def offered(release: Release) -> list[tuple[str, str, int]]:
    """Long form, source and counted rows of the prototypes of long forms in the dictionary."""
    model, scorer = expander(release)
    assert scorer.prototypes is not None
    entries = scorer.prototypes.entries
    return [(u.long_form, u.source, u.rows) for u in entries if u.long_form in model.dictionary[u.short_form]]


def test_a_whole_run_writes_a_release_that_answers_and_is_scored(
    tiny_bert: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AcronymTrainee, "validate", lambda self, number: {"macro_f1": 0.1 * number})
    release = made("acronym", data=folder, output=tmp_path / "out", base=tiny_bert, **SMALL)
    manifest, (model, _) = release.manifest, expander(release)
    assert set(manifest.files) == {"dictionary.tsv", "head.safetensors", ADAPTER, *PROTOTYPES}
    at_coverage = {"accuracy_at_90", "accuracy_at_80", "accuracy_at_60"}
    scores = {"accuracy", "macro_f1", "authors_f1", "accuracy_defined", *at_coverage}
    assert {s.name for s in manifest.scores} == scores
    names = [source.name.split(" ")[0] for source in manifest.training_data]
    assert names == ["CASI", "ADE", "teaching"]
    assert not any("NC" in source.licence for source in manifest.training_data)
    assert set(manifest.configuration["mixture"]) == set(Mixture._fields)
    # UNSURED SENSE is a class of CASI and never offered as a long form.
    assert model.dictionary["PD"] == (*DICTIONARY["PD"], "panda dance", "posterior descending")
    written = sorted(entry for entry in offered(release) if entry[1] == WRITTEN)
    assert ("panda dance", WRITTEN, 0) in written and ("pain drug", WRITTEN, 0) in written
    # Long forms of CASI that this dictionary lacks.
    assert model.dictionary["PE"] == ("pulmonary embolism",)
    assert "FISH" in model.dictionary["FISH"]
    first, single = model.predict(["a pain with PD today; ONE and XYZ too", "ONE only"])
    assert [(e.short_form, e.source) for e in first] == [("PD", "dictionary"), ("ONE", "dictionary")]
    assert first[0].long_form in model.dictionary["PD"]
    assert 1 / 5 <= first[0].score <= 1
    assert (first[1].long_form, first[1].score, single[0].score) == ("only this", 1.0, 1.0)
    again = refreshed(release, Place(folder, tmp_path / "again", torch.device("cpu")))
    check_alike(again, release)


def check_alike(again: Release, release: Release) -> None:
    """A release made from the network of another one by the same tables is as the other one."""
    assert again.manifest.configuration["like"] == release.version
    for part in ("training", "mixture", "share", "network", "short_forms"):
        assert again.manifest.configuration[part] == release.manifest.configuration[part]
    assert again.manifest.training_data == release.manifest.training_data
    same = [release.manifest.files, again.manifest.files]
    ours, theirs = (
        {n: f.sha256 for n, f in files.items() if n != "prototypes.safetensors"} for files in same
    )
    assert ours == theirs
    one, other = (read_tensors(r.file("prototypes.safetensors"))["vectors"] for r in (again, release))
    assert torch.allclose(one, other, atol=1e-3)


def test_the_papers_network_is_built_without_prototypes(tiny_bert: str, folder: Path, tmp_path: Path) -> None:
    paper = {"corpora": "sdu22_scientific", "objective": "m", "rank": 0, "rows": 0}
    release = made("acronym", data=folder, output=tmp_path, base=tiny_bert, **SMALL | paper)
    assert set(release.manifest.files) == {"dictionary.tsv", "head.safetensors", WEIGHTS}
    assert release.manifest.kind == "definitions in the text, else an m-network (m)"
    (source,) = release.manifest.training_data
    assert source.name == "SDU@AAAI-22 acronym disambiguation, scientific English, training part"
    ((expansion, *_),) = expander(release)[0].predict(["a pain with PD today"])
    assert expansion.long_form in DICTIONARY["PD"]
    again = refreshed(release, Place(folder, tmp_path / "again", torch.device("cpu")))
    assert again.manifest.files == release.manifest.files


def test_a_release_is_made_without_both_corpora(tiny_bert: str, tmp_path: Path) -> None:
    """For whoever cannot use CASI or the ADE corpus: nothing is read of what is not among the corpora."""
    release = made("acronym", data=tmp_path, output=tmp_path, base=tiny_bert, corpora="written", **SMALL)
    assert [s.licence for s in release.manifest.training_data] == ["CC0-1.0"]
    assert release.manifest.scores == []
    assert {source for _, source, _ in offered(release)} == {WRITTEN}
    # The senses of CASI are not in the dictionary.
    assert "PE" not in expander(release)[0].dictionary


@pytest.mark.parametrize(("corpora", "kept"), [("written,ade", "ADE corpus"), ("written,casi", "CASI")])
def test_a_release_made_without_one_of_them_learns_from_the_other_and_is_scored_on_both(
    corpora: str, kept: str, tiny_bert: str, folder: Path, tmp_path: Path
) -> None:
    release = made("acronym", data=folder, output=tmp_path, base=tiny_bert, corpora=corpora, **SMALL)
    first, last = release.manifest.training_data
    assert first.name.startswith(kept)
    assert last.licence == "CC0-1.0"
    assert {"accuracy", "accuracy_defined"} <= {s.name for s in release.manifest.scores}


def test_corpora_that_cannot_be_used_are_refused(tiny_bert: str, folder: Path, tmp_path: Path) -> None:
    for corpora, said in (
        ("casi", "softmax does not learn from casi alone"),
        ("psytar", "'psytar' is none of"),
    ):
        with pytest.raises(typer.BadParameter, match=said):
            made("acronym", data=folder, output=tmp_path, base=tiny_bert, corpora=corpora)
    (tmp_path / "acronyms").mkdir()
    for part in ("train", "dictionary"):
        text = "[]" if part == "train" else "{}"
        (tmp_path / f"acronyms/sdu22_legal_{part}.json").write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match="sdu22_legal: no row to train on"):
        made("acronym", data=tmp_path, output=tmp_path, base=tiny_bert, corpora="sdu22_legal", **SMALL)


def test_no_release_without_a_network_and_no_non_commercial_corpus_is_used(
    tiny: dict[str, Release], folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match="no trained network"):
        refreshed(tiny["acronym"], Place(folder, tmp_path, torch.device("cpu")))
    assert Settings().names == ("written", "ade", "casi")
