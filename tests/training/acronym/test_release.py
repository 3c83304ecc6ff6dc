"""Whole runs of the task, and what they build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from models.acronym.m_network import MNetwork
from models.acronym.model import AcronymModel
from models.acronym.tables import TableScorer, Weights
from models.drift import REFERENCE
from models.encoder.weights import WEIGHTS
from models.loading import load
from models.releases.manifest import NO_BASE, Release, ReleaseError, TrainingData
from tests.training.acronym.corpus import DICTIONARY
from tests.training.recipes.runs import made
from training.acronym.release import refreshed
from training.acronym.settings import Settings
from training.common.corpora import CorpusError
from training.recipes.stages import Place

SMALL: dict[str, Any] = {"objective": "m", "epochs": 1, "pieces": 64, "precision": "float32"}
TABLES = {"dictionary.tsv", "frequencies.tsv", "counts.tsv", "cues.tsv", REFERENCE}
pytestmark = pytest.mark.usefixtures("contexts")


def expander(release: Release) -> AcronymModel:
    model = load(release, dtype="float32").model
    assert isinstance(model, AcronymModel)
    return model


def counts(model: AcronymModel) -> dict[str, dict[tuple[str, str], int]]:
    assert isinstance(model.scorer, TableScorer)
    return model.scorer.frequencies.counts


def test_a_release_of_tables_answers_and_is_scored(folder: Path, tmp_path: Path) -> None:
    release = made("acronym", data=folder, output=tmp_path)
    manifest, model = release.manifest, expander(release)
    assert (manifest.base, manifest.base_sha256, set(manifest.files)) == (NO_BASE, None, TABLES)
    at_coverage = {"accuracy_at_90", "accuracy_at_80", "accuracy_at_60"}
    scores = {"accuracy", "macro_f1", "authors_f1", "accuracy_sentences", "accuracy_defined", *at_coverage}
    assert {s.name for s in manifest.scores} == scores
    assert [source.name.split(" ")[0] for source in manifest.training_data] == ["CASI", "ADE", "teaching"]
    assert not any("NC" in source.licence for source in manifest.training_data)
    assert manifest.configuration["weights"] == Weights(Settings().frequency, Settings().cues)._asdict()
    # UNSURED SENSE is a class of CASI and never offered as a long form.
    assert model.dictionary["PD"] == (*DICTIONARY["PD"], "panda dance", "posterior descending")
    # Long forms of CASI that this dictionary lacks.
    assert model.dictionary["PE"] == ("pulmonary embolism",)
    assert "FISH" in model.dictionary["FISH"]
    casi = counts(model)["casi"]
    assert casi["PD", "pain drug"] == 7
    # The corpus has "thepain", which the dictionary spells "the pain".
    assert casi["TP", "the pain"] == casi["TP", "thepain"] == 7
    assert counts(model)["ade"] == {("PD", "pain drug"): 12, ("DD", "dull dose"): 12}
    first, single = model.predict(["a pain with PD today; ONE and XYZ too", "ONE only"])
    assert [(e.short_form, e.source) for e in first] == [("PD", "dictionary"), ("ONE", "dictionary")]
    assert first[0].long_form == "pain drug"
    assert (first[1].long_form, first[1].score, single[0].score) == ("only this", 1.0, 1.0)


def test_the_papers_network_is_a_release(tiny_bert: str, folder: Path, tmp_path: Path) -> None:
    release = made(
        "acronym", data=folder, output=tmp_path, base=tiny_bert, corpora="sdu22_scientific", **SMALL
    )
    assert set(release.manifest.files) == {"dictionary.tsv", "head.safetensors", WEIGHTS, REFERENCE}
    assert release.manifest.kind == "definitions in the text, else an m-network (m)"
    (source,) = release.manifest.training_data
    assert source.name == "SDU@AAAI-22 acronym disambiguation, scientific English, training part"
    model = expander(release)
    assert isinstance(model.scorer, MNetwork)
    ((expansion, *_),) = model.predict(["a pain with PD today"])
    assert expansion.long_form in DICTIONARY["PD"]


@pytest.mark.parametrize(
    ("corpora", "kept"), [("written", ""), ("written,ade", "ADE corpus"), ("written,casi", "CASI")]
)
def test_a_release_is_made_without_one_of_the_corpora_or_both(
    corpora: str, kept: str, folder: Path, tmp_path: Path
) -> None:
    """For whoever cannot use them: nothing is read of what is not among the corpora, but to be scored."""
    data = folder if kept else tmp_path
    release = made("acronym", data=data, output=tmp_path, corpora=corpora)
    *others, last = release.manifest.training_data
    assert [source.name[: len(kept)] for source in others] == ([kept] if kept else [])
    assert last.licence == "CC0-1.0"
    measured = {s.name for s in release.manifest.scores}
    assert ({"accuracy", "accuracy_defined"} <= measured) if kept else (measured == {"accuracy_sentences"})
    model = expander(release)
    assert set(counts(model)) == set(corpora.split(",")) - {"written"}
    # The senses of CASI are not in the dictionary.
    assert ("PE" in model.dictionary) is (kept == "CASI")


def test_a_release_of_tables_is_made_again_with_todays_tables(folder: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"corpora": "casi,written", "frequency": 0.5, "cues": 2.0}
    first = made("acronym", data=folder, output=tmp_path / "first", **settings)
    place = Place(folder, tmp_path / "again", torch.device("cpu"))
    assert refreshed(first, place).manifest == first.manifest
    with (tmp_path / "dictionary.tsv").open("a", encoding="utf-8") as ours:
        ours.write("NEW\tnew sense\n")
    again = refreshed(first, place)
    assert "new sense" in expander(again).dictionary["NEW"]
    stated = again.manifest.configuration
    assert stated["short_forms"] == len(expander(first).dictionary) == len(expander(again).dictionary)
    changed = {name for name, file in again.manifest.files.items() if first.manifest.files[name] != file}
    assert changed == {"dictionary.tsv"}
    assert [s.value for s in again.manifest.scores] == [s.value for s in first.manifest.scores]
    sources = [TrainingData(name="another corpus", licence="")]
    other = Release(first.path, first.manifest.model_copy(update={"training_data": sources}), first.version)
    with pytest.raises(ReleaseError, match="the recipe has no corpus 'another corpus'"):
        refreshed(other, place)


@pytest.mark.slow
def test_a_network_gets_todays_dictionary(tiny_bert: str, folder: Path, tmp_path: Path) -> None:
    settings = {"base": tiny_bert, "corpora": "sdu22_scientific"} | SMALL
    first = made("acronym", data=folder, output=tmp_path / "first", **settings)
    (tmp_path / "dictionary.tsv").write_text("short_form\tlong_form\nPD\tplain dose\n", encoding="utf-8")
    again = refreshed(first, Place(folder, tmp_path / "again", torch.device("cpu")))
    changed = {name for name, file in again.manifest.files.items() if first.manifest.files[name] != file}
    assert {"dictionary.tsv"} <= changed <= {"dictionary.tsv", REFERENCE}
    assert expander(again).dictionary == {"PD": ("plain dose",)}
    before, after = first.manifest.configuration, again.manifest.configuration
    assert after == before | {"like": first.version, "short_forms": 1}
    assert again.manifest.training_data == first.manifest.training_data


def test_corpora_that_cannot_be_used_are_refused(tiny_bert: str, folder: Path, tmp_path: Path) -> None:
    for corpora, said in (
        ("sdu22_legal", "'sdu22_legal' is none of written, ade, casi$"),
        ("psytar", "'psytar' is none of"),
    ):
        with pytest.raises(typer.BadParameter, match=said):
            made("acronym", data=folder, output=tmp_path, corpora=corpora)
    (tmp_path / "acronyms").mkdir()
    for part in ("train", "dictionary"):
        text = "[]" if part == "train" else "{}"
        (tmp_path / f"acronyms/sdu22_legal_{part}.json").write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match="sdu22_legal: no row to train on"):
        made("acronym", data=tmp_path, output=tmp_path, base=tiny_bert, corpora="sdu22_legal", **SMALL)
