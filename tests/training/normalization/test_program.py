"""The program run whole on a tiny base: releases with training, without training and over other terms."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

from models import terminology
from models.encoder.weights import ADAPTER
from models.loading import load
from models.normalization.model import NormalizationModel
from models.normalization.nil_rule import NilRule
from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from models.releases.tensors import read_tensors
from models.types import Query
from tests.training.normalization.small_terms import write_corpus
from training.normalization.__main__ import main
from training.normalization.nil.threshold import DEFAULT_NIL
from training.teaching.readers import phrases

pytestmark = pytest.mark.matrix


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus of six drugs and a terminology."""
    return write_corpus(tmp_path)


def built(folder: Path, base: str, **options: Any) -> Path:
    """The directory of the release that the program writes."""
    common: dict[str, Any] = {"data": folder / "data", "terms": folder / "terms.tsv", "epochs": 1}
    output = folder / f"out{len(list(folder.iterdir()))}"
    main(output=output, base=base, **common | options)
    (path,) = (output / "normalization").iterdir()
    return path


def test_the_program_builds_a_release_that_reads_the_sentence(folder: Path, tiny_bert: str) -> None:
    release = open_release(built(folder, tiny_bert))
    assert "isolated.safetensors" not in release.manifest.files
    coverage = [row["coverage"] for row in release.manifest.configuration["risk_coverage"]]
    assert coverage == sorted(coverage, reverse=True)
    loaded = load(release, dtype="float32")
    inside, alone = loaded.model.predict(
        [Query("it hurts all day", 3, 8, "hurts"), Query("hurts", 0, 5, "hurts")]
    )
    assert 0 < inside.context_weight < 1
    assert alone.context_weight is None
    names = {s.name: s for s in release.manifest.scores}
    assert {"acc@1", "acc@5", "acc@10", "acc@1_seen", "acc@1_unseen", "context_weight", "f1"} <= names.keys()
    assert names["acc@1"].baseline is not None


def test_a_run_that_learns_lay_phrases_names_them_and_stores_s_isolated(folder: Path, tiny_bert: str) -> None:
    release = open_release(built(folder, tiny_bert, phrase_epochs=1))
    assert "isolated.safetensors" in release.manifest.files
    assert "synthetic" in release.manifest.training_data[1].name
    assert load(release, dtype="float32").passes_canary()


def test_s_isolated_begins_with_another_release_whose_data_is_named(folder: Path, tiny_bert: str) -> None:
    first = open_release(built(folder, tiny_bert, phrase_epochs=1, epochs=0))
    second = open_release(built(folder, tiny_bert, epochs=0, taught=False, start_isolated=first.path))
    assert set(first.manifest.training_data) == set(second.manifest.training_data)
    ours, theirs = (read_tensors(release.file(ADAPTER)) for release in (first, second))
    assert ours.keys() == theirs.keys() != set()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert load(second, dtype="float32").passes_canary()


def test_a_release_without_s_context_reads_the_mention_alone(folder: Path, tiny_bert: str) -> None:
    release = open_release(built(folder, tiny_bert, phrase_epochs=1, epochs=0))
    assert "adapter.safetensors" in release.manifest.files
    assert not {"isolated.safetensors", "dcr.safetensors"} & release.manifest.files.keys()
    assert "CONORM" not in release.manifest.kind and "zero-shot" not in release.manifest.kind
    loaded = load(release, dtype="float32")
    assert loaded.passes_canary()
    inside, alone = loaded.model.predict(
        [Query("it hurts all day", 3, 8, "hurts"), Query("hurts", 0, 5, "hurts")]
    )
    assert inside == alone and inside.context_weight is None
    other = open_release(built(folder, tiny_bert, like=release.path, terms=folder / "terms.tsv"))
    assert load(other, dtype="float32").model.predict([Query("hurts", 0, 5, "hurts")]) == [alone]


def test_a_release_with_matrices_but_no_trained_context_is_refused(folder: Path, tiny_bert: str) -> None:
    release = open_release(built(folder, tiny_bert))
    files = {n: f for n, f in release.manifest.files.items() if n != "adapter.safetensors"}
    release.manifest = release.manifest.model_copy(update={"files": files})
    with pytest.raises(ReleaseError, match="without a trained S_context"):
        load(release, dtype="float32")


@pytest.mark.parametrize("options", [{}, {"phrase_epochs": 1}], ids=str)
def test_other_terms_are_coded_to_with_the_same_encoders(
    folder: Path, tiny_bert: str, options: dict[str, Any]
) -> None:
    first = built(folder, tiny_bert, **options)
    (folder / "other.tsv").write_text("llt\tpt\tsoc\nsore\tPain\t-\nfit\tSeizure\t-\n", encoding="utf-8")
    other = open_release(built(folder, tiny_bert, data=None, terms=folder / "other.tsv", like=first))
    queries = [Query("it hurts all day", 3, 8, "hurts")]
    one, two = (NormalizationModel.load(open_release(p)) for p in (first, other.path))
    (expected,), (coding,) = one.with_terms(two.terms, 5).predict(queries), two.predict(queries)
    assert {c.pt for c in coding.candidates} == {"Pain", "Seizure"}
    # The stored vectors have 8 bits.
    assert coding.candidates[0].score == pytest.approx(expected.candidates[0].score, abs=0.01)
    assert coding.context_weight == expected.context_weight
    assert two.nil_below == one.nil_below
    assert "risk_coverage" not in other.manifest.configuration


def test_phrases_that_are_searched_are_named_once(folder: Path, tiny_bert: str) -> None:
    (folder / "some.tsv").write_text("llt\tpt\tsoc\nheadache\tHeadache\t-\n", encoding="utf-8")
    first = built(folder, tiny_bert, like=built(folder, tiny_bert))
    again = built(folder, tiny_bert, like=first, terms=folder / "some.tsv")
    searched = [
        [d.name for d in open_release(path).manifest.training_data if d.name.endswith("searched")]
        for path in (first, again)
    ]
    assert [len(names) for names in searched] == [1, 1]
    assert searched[0] != searched[1]


def test_a_release_over_other_terms_is_offered_where_asked_for(
    folder: Path, tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], *, check: bool, **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "")

    first = built(folder, tiny_bert)
    monkeypatch.setattr("training.evaluation.finish.subprocess.run", run)
    other = built(folder, tiny_bert, like=first, offered=True)
    offered = [c for c in commands if "announce" in c]
    assert [c[3:] for c in offered] == [["announce", str(other), "--data", str(folder / "data")]]


def test_training_requires_data(folder: Path, tiny_bert: str) -> None:
    with pytest.raises(Exception, match="--data"):
        built(folder, tiny_bert, data=None)


# Without training


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    rows = "Insomnia\tInsomnia\tP\nno sleep\tInsomnia\tP\nRash\tRash\tS\nThrowing up\tVomiting\tG\n"
    path.write_text("llt\tpt\tsoc\n" + rows, encoding="utf-8")
    return path


def zero_shot(output: Path, **options: Any) -> Release:
    main(output=output, zero_shot=True, **options)
    (path,) = (output / "normalization").iterdir()
    return open_release(path)


def test_a_release_without_training_has_terms_and_their_vectors(
    tmp_path: Path, terms: Path, tiny_bert: str
) -> None:
    release = zero_shot(tmp_path / "out", terms=terms, base=tiny_bert)
    assert release.manifest.scores == []
    assert release.manifest.configuration["nil_below"] == DEFAULT_NIL
    assert terminology.load(release.file("terminology.tsv")) == terminology.load(terms)
    (coding,) = load(release, dtype="float32").model.predict([Query("no sleep", 0, 8, "no sleep")])
    assert (coding.candidates[0].llt, coding.candidates[0].pt) == ("no sleep", "Insomnia")
    assert {c.pt for c in coding.candidates} == {"Insomnia", "Rash", "Vomiting"}


def test_the_nil_threshold_comes_from_validation_and_the_scores_from_the_held_out_part(
    tmp_path: Path, terms: Path, tiny_bert: str
) -> None:
    (tmp_path / "data/psytar").mkdir(parents=True)
    (tmp_path / "data/psytar/normalization.csv").write_text(
        "drug_id,mention,sentence,sider_meddra_terms\n"
        "a.1,no sleep,No sleep.,Insomnia\n"
        "b.1,Rash,Rash.,Rash\n"
        "b.2,Rash,Rash.,Rash\n"
        "a.3,odd,odd.,Unknown term\n",
        encoding="utf-8",
    )
    manifest = zero_shot(tmp_path / "out", data=tmp_path / "data", terms=terms, base=tiny_bert).manifest
    scores = {s.name: (s.value, s.records, s.baseline) for s in manifest.scores}
    # The drug a is held out; its mentions were never trained on.
    assert scores["acc@1"] == (0.5, 2, 0.5)
    assert scores["acc@1_unseen"] == (1.0, 1, 1.0)
    assert scores["acc@1_seen"] == (0.0, 0, 0.0)
    assert (scores["known"], scores["exact"]) == ((0.5, 2, None), (0.5, 2, None))
    # The validation mentions are a term: every threshold is as good, the lowest is chosen.
    assert manifest.configuration["nil_below"] == 0.2
    assert manifest.configuration["risk_coverage"][0] == {"threshold": 0.2, "coverage": 1.0, "accuracy": 1.0}


@pytest.mark.parametrize("loss", [0.05, 0.2])
def test_a_release_gets_a_rule_for_nil_and_keeps_its_files(folder: Path, tiny_bert: str, loss: float) -> None:
    terms = folder / "many.tsv"
    # Of every second concept the terminology has the very phrase.
    known = phrases("held_out")[::10]
    rows = [f"{p.terms[0]}\t{p.terms[0]}\tS\n" for p in known]
    rows += [f"{p.mention}\t{p.terms[0]}\tS\n" for p in known[::2]]
    terms.write_text("llt\tpt\tsoc\n" + "".join(dict.fromkeys(rows)), encoding="utf-8")
    original = open_release(built(folder, tiny_bert, zero_shot=True, terms=terms))
    path = built(folder, tiny_bert, like=original.path, calibrate=True, nil_loss=loss)
    release = open_release(path)
    assert release.manifest.files == original.manifest.files
    configuration = release.manifest.configuration
    rule = NilRule.of(configuration["nil_rule"])
    assert 0 < rule.below < 1
    assert configuration["nil_below"] == original.manifest.configuration["nil_below"]
    calibration = configuration["nil_calibration"]
    assert set(calibration) == {"development", "test", "test_by_cosine"}
    # The threshold loses so many of the right codings of the development half.
    assert configuration["nil_loss"] == loss
    assert calibration["development"]["right_lost"] == pytest.approx(loss, abs=0.02)
    loaded = load(release, dtype="float32")
    (coding,) = loaded.model.predict([Query("rash", 0, 4, "rash")])
    assert coding.nil == (coding.confidence < rule.below)
    assert any("lay phrases" in d.name for d in release.manifest.training_data)
    # Over other terms the rule is the same, but nobody has measured what it does there.
    other = open_release(built(folder, tiny_bert, like=path, terms=folder / "terms.tsv"))
    assert other.manifest.configuration["nil_rule"] == configuration["nil_rule"]
    assert "nil_calibration" not in other.manifest.configuration


def test_a_rule_for_nil_needs_right_codings(folder: Path, tiny_bert: str) -> None:
    original = built(folder, tiny_bert, zero_shot=True)
    with pytest.raises(typer.BadParameter, match=r"no mention .* is coded right"):
        built(folder, tiny_bert, like=original, calibrate=True)


def test_a_rule_for_nil_needs_a_release_and_data(folder: Path, tiny_bert: str) -> None:
    with pytest.raises(typer.BadParameter, match="--like and --data"):
        built(folder, tiny_bert, calibrate=True)
