"""Runs of the recipe on a tiny base: releases with training, without, in stages and over other terms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from models import terminology
from models.encoder.model import Encoder, encoder_of
from models.encoder.weights import ADAPTER
from models.loading import load
from models.normalization.model import NormalizationModel
from models.normalization.nil_rule import NilRule
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.releases.tensors import read_tensors
from models.types import Coding, Query
from tests.training.idiom.conftest import semeval
from tests.training.normalization.small_terms import write_corpus
from tests.training.recipes import runs
from training.evaluation.idiom import PRIMARY, STS
from training.idiom.train import IdiomTrainee
from training.normalization.parts import refreshed
from training.teaching.readers import phrases

__all__ = ["semeval"]
pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("few_written")]
INSIDE, ALONE = Query("it hurts all day", 3, 8, "hurts"), Query("hurts", 0, 5, "hurts")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of six drugs and a terminology."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def made(folder: Path, base: str, **settings: Any) -> Release:
    """The release of a run of one epoch, by default of S_isolated."""
    common: dict[str, Any] = {"terms": str(folder / "terms.tsv"), "epochs": 1, "batch": 32, "base": base}
    output = folder / f"out{len(list(folder.iterdir()))}"
    return runs.made("normalization", data=folder / "data", output=output, **common | settings)


@pytest.fixture(scope="module")
def isolated(folder: Path, tiny_bert: str, few_written: None) -> Release:
    return made(folder, tiny_bert)


@pytest.fixture(scope="module")
def contextual(folder: Path, tiny_bert: str, few_written: None) -> Release:
    return made(folder, tiny_bert, trained="context")


def answers(release: Release, *queries: Query) -> list[Coding]:
    loaded = load(release, dtype="float32")
    assert loaded.passes_canary()
    return list(loaded.model.predict(queries))


def test_a_release_with_s_context_reads_the_sentence(contextual: Release) -> None:
    assert "isolated.safetensors" not in contextual.manifest.files
    assert "CONORM" in contextual.manifest.kind
    configuration = contextual.manifest.configuration
    assert (configuration["window"], configuration["context_words"]) == (16, 1)
    assert configuration["training"]["window"] > 16
    inside, alone = answers(contextual, INSIDE, ALONE)
    assert inside.context_weight is not None and 0 < inside.context_weight < 1
    assert alone.context_weight is None
    names = {s.name: s for s in contextual.manifest.scores}
    assert {"acc@1", "acc@5", "acc@10", "acc@1_seen", "acc@1_unseen", "f1"} <= names.keys()
    assert names["acc@1"].baseline is not None


def test_a_release_of_lay_phrases_reads_the_mention_alone(isolated: Release) -> None:
    assert "adapter.safetensors" in isolated.manifest.files
    assert not {"isolated.safetensors", "dcr.safetensors"} & isolated.manifest.files.keys()
    assert "CONORM" not in isolated.manifest.kind and "zero-shot" not in isolated.manifest.kind
    assert any("synthetic" in source.name for source in isolated.manifest.training_data)
    inside, alone = answers(isolated, INSIDE, ALONE)
    assert inside == alone and inside.context_weight is None


def test_s_context_is_trained_over_the_s_isolated_of_the_stage_before(
    folder: Path, tiny_bert: str, isolated: Release
) -> None:
    first, second = isolated, made(folder, tiny_bert, trained="context", start=isolated)
    assert set(first.manifest.training_data) <= set(second.manifest.training_data)
    assert second.manifest.configuration["training"]["start"] == first.version
    # What S_isolated gave stays as it is, to the byte.
    kept = {name: name for name in ("vectors.safetensors", "phrases.tsv", "phrases.safetensors")}
    for name, former in (kept | {"isolated.safetensors": "adapter.safetensors"}).items():
        assert second.file(name).read_bytes() == first.file(former).read_bytes(), name
    assert (
        read_tensors(second.file("isolated.safetensors")).keys() == read_tensors(first.file(ADAPTER)).keys()
    )
    ours, theirs = (NormalizationModel.load(release).encoder.embed(["hurts"]) for release in (first, second))
    assert torch.allclose(ours, theirs, atol=1e-4)
    assert answers(second, INSIDE)[0].context_weight is not None


def test_s_isolated_begins_with_idiom_vectors(
    folder: Path, tiny_bert: str, semeval: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An epoch is kept whatever it does to these vectors.
    monkeypatch.setattr(IdiomTrainee, "validate", lambda self, number: {PRIMARY: 0.1 * number, STS: 0.5})
    settings: dict[str, Any] = dict(base=tiny_bert, epochs=1, rank=2, batch=16, lr=1e-2)
    idiom = runs.made("idiom", data=semeval, output=folder / "idiom", **settings)
    release = made(folder, tiny_bert, epochs=0, start=idiom)
    assert set(idiom.manifest.training_data) <= set(release.manifest.training_data)
    ours, theirs, base = (
        encoder.embed(["dead tired"])
        for encoder in (
            NormalizationModel.load(release).encoder,
            encoder_of(idiom),
            Encoder.load(tiny_bert),
        )
    )
    assert torch.allclose(ours, theirs, atol=5e-3)
    assert not torch.allclose(ours, base, atol=5e-3)
    with pytest.raises(ReleaseError, match="no release over mini"):
        made(folder, "mini", start=idiom)


def test_without_an_epoch_a_release_is_the_base_over_the_terms(folder: Path, tiny_bert: str) -> None:
    release = made(folder, tiny_bert, epochs=0)
    assert "zero-shot" in release.manifest.kind and ADAPTER not in release.manifest.files
    assert terminology.load(release.file("terminology.tsv")) == terminology.load(folder / "terms.tsv")
    (coding,) = answers(release, Query("no sleep", 0, 8, "no sleep"))
    assert (coding.candidates[0].llt, coding.candidates[0].pt) == ("no sleep", "Insomnia")
    with pytest.raises(typer.BadParameter, match="an epoch at least"):
        made(folder, tiny_bert, trained="context", epochs=0)


def test_the_papers_search_is_the_nearest_name_and_never_nil(folder: Path, tiny_bert: str) -> None:
    release = made(folder, tiny_bert, trained="context", search="paper")
    assert not {"phrases.tsv", "taught.tsv"} & release.manifest.files.keys()
    assert not {"vote", "prior", "spelling", "nil_rule"} & release.manifest.configuration.keys()
    assert not any(coding.nil for coding in answers(release, INSIDE, ALONE))


def test_a_release_with_matrices_but_no_trained_context_is_refused(contextual: Release) -> None:
    release = open_release(contextual.path)
    files = {n: f for n, f in release.manifest.files.items() if n != ADAPTER}
    release.manifest = release.manifest.model_copy(update={"files": files})
    with pytest.raises(ReleaseError, match="without a trained S_context"):
        load(release, dtype="float32")


@pytest.mark.parametrize("trained", ["isolated", "contextual"])
def test_other_terms_are_coded_to_with_the_same_encoders(
    tmp_path: Path, request: pytest.FixtureRequest, trained: str
) -> None:
    first: Release = request.getfixturevalue(trained)
    (tmp_path / "other.tsv").write_text("llt\tpt\tsoc\nsore\tPain\t-\nfit\tSeizure\t-\n", encoding="utf-8")
    other = refreshed(first, terminology.load(tmp_path / "other.tsv"), tmp_path / "other", None)
    one, two = (NormalizationModel.load(release) for release in (first, other))
    vectors, own = one.encoder.embed([t.llt for t in two.terms]), one.phrases_of(two.terms)
    over = NormalizationModel(
        one.encoder, two.terms, vectors, k=5, nil_below=0.0, refiner=one.refiner, spelling=one.spelling, **own
    )
    (expected,), (coding,) = over.predict([INSIDE]), two.predict([INSIDE])
    assert {c.pt for c in coding.candidates} == {"Pain", "Seizure"}
    # The stored vectors have 8 bits.
    assert coding.candidates[0].score == pytest.approx(expected.candidates[0].score, abs=0.01)
    assert coding.context_weight == expected.context_weight
    assert two.nil_below == one.nil_below
    assert other.manifest.scores == [] and other.manifest.configuration["like"] == first.version


def test_a_release_made_again_with_the_same_tables_has_the_same_files(
    folder: Path, tmp_path: Path, isolated: Release
) -> None:
    terms = terminology.load(folder / "terms.tsv")
    again, further = (
        refreshed(isolated, terms, tmp_path / name, folder / "data") for name in ("again", "further")
    )
    assert again.manifest.files == further.manifest.files
    # Those of training were computed by the encoder that was trained, whose last digits are others.
    computed = {"vectors.safetensors", "phrases.safetensors", "taught.safetensors"}
    ours, theirs = (
        {name: file for name, file in release.manifest.files.items() if name not in computed}
        for release in (isolated, again)
    )
    assert ours == theirs != {}
    assert {s.name: s.value for s in again.manifest.scores} == {
        s.name: s.value for s in isolated.manifest.scores
    }
    assert set(again.manifest.training_data) == set(isolated.manifest.training_data)


def test_phrases_that_are_searched_are_named_once(folder: Path, tiny_bert: str, tmp_path: Path) -> None:
    (tmp_path / "some.tsv").write_text("llt\tpt\tsoc\nheadache\tHeadache\t-\n", encoding="utf-8")
    first = made(folder, tiny_bert, epochs=0)
    again = refreshed(first, terminology.load(tmp_path / "some.tsv"), tmp_path / "again", None)
    searched = [
        [d.name for d in release.manifest.training_data if d.name.endswith("searched")]
        for release in (first, again)
    ]
    assert [len(names) for names in searched] == [1, 1]
    assert searched[0] != searched[1]


def test_nil_has_a_threshold_of_validation_data_and_held_out_scores(tmp_path: Path, tiny_bert: str) -> None:
    terms = tmp_path / "terms.tsv"
    rows = "Insomnia\tInsomnia\tP\nno sleep\tInsomnia\tP\nRash\tRash\tS\nThrowing up\tVomiting\tG\n"
    terms.write_text("llt\tpt\tsoc\n" + rows, encoding="utf-8")
    (tmp_path / "data/psytar").mkdir(parents=True)
    (tmp_path / "data/psytar/normalization.csv").write_text(
        "drug_id,mention,sentence,sider_meddra_terms\n"
        "a.1,no sleep,No sleep.,Insomnia\n"
        "b.1,Rash,Rash.,Rash\n"
        "b.2,Rash,Rash.,Rash\n"
        "a.3,odd,odd.,Unknown term\n",
        encoding="utf-8",
    )
    manifest = made(tmp_path, tiny_bert, epochs=0, terms=str(terms)).manifest
    scores = {s.name: (s.value, s.records) for s in manifest.scores}
    # The drug a is held out; its mentions were never trained on.
    assert scores["acc@1"] == (0.5, 2)
    assert scores["acc@1_unseen"] == (1.0, 1)
    assert scores["acc@1_seen"] == (0.0, 0)
    assert (scores["known"], scores["exact"]) == ((0.5, 2), (0.5, 2))
    # The validation mentions are a term: every threshold is as good, the lowest is chosen.
    assert manifest.configuration["nil_below"] == 0.2


def test_a_release_gets_a_rule_for_nil_that_other_terms_keep_anyway(
    folder: Path, tiny_bert: str, tmp_path: Path
) -> None:
    terms = tmp_path / "many.tsv"
    # Of every second concept the terminology has the very phrase.
    known = phrases("held_out")[::10]
    rows = [f"{p.terms[0]}\t{p.terms[0]}\tS\n" for p in known]
    rows += [f"{p.mention}\t{p.terms[0]}\tS\n" for p in known[::2]]
    terms.write_text("llt\tpt\tsoc\n" + "".join(dict.fromkeys(rows)), encoding="utf-8")
    release = made(folder, tiny_bert, epochs=0, terms=str(terms))
    configuration = release.manifest.configuration
    rule = NilRule.of(configuration["nil_rule"])
    assert 0 < rule.below < 1
    (coding,) = answers(release, Query("rash", 0, 4, "rash"))
    assert coding.confidence is not None and coding.nil == (coding.confidence < rule.below)
    assert any("lay phrases, for the rule" in d.name for d in release.manifest.training_data)
    assert "nil_of_missing" in {s.name for s in release.manifest.scores}
    # Over other terms the rule is the same where there is nothing to fit it on.
    other = refreshed(release, terminology.load(folder / "terms.tsv"), tmp_path / "other", None)
    assert other.manifest.configuration["nil_rule"] == configuration["nil_rule"]
    again = refreshed(release, terminology.load(terms), tmp_path / "again", folder / "data")
    assert again.manifest.configuration["nil_rule"] == pytest.approx(configuration["nil_rule"], abs=0.05)
