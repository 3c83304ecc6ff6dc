"""The program that trains the tagger, and what its releases hold and state."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from safetensors.torch import load_file

from models import drugs
from models.drift import REFERENCE
from models.encoder.model import Encoder, encoder_of
from models.encoder.weights import ADAPTER
from models.loading import load
from models.ner.decoding import TRANSITIONS, Decoding
from models.ner.model import NerModel
from models.ner.untagged_events import NAMES, write_names
from models.releases.manifest import Release, ReleaseError
from models.releases.store import build, describe, open_release
from models.terminology import Term
from models.types import DRUG, LABELS
from tests.models import tiny
from tests.tiny_releases import tiny_release
from tests.training.ner.test_train import loop_of, tagger
from tests.training.recipes.runs import made
from training.common.corpora import read_ade_abstracts
from training.evaluation.relation import split_texts
from training.ner.data import read
from training.ner.release import refreshed
from training.ner.settings import NAMED_FROM, PROCEDURES, Settings, event_names
from training.ner.train import counted_transitions
from training.recipes.stages import Place

pytestmark = pytest.mark.matrix


def test_a_training_run_builds_a_tagger_that_loads(corpus: Path, tmp_path: Path) -> None:
    base = tiny.bert(tmp_path / "base")
    before = {n: t.clone() for n, t in Encoder.load(base).model.state_dict().items()}
    release = made("ner", data=corpus, output=tmp_path, base=base, epochs=2, average=1, batch=4)
    manifest = release.manifest
    assert sorted(manifest.files) == sorted([ADAPTER, "drugs.tsv", "head.safetensors", TRANSITIONS])
    assert manifest.configuration["labels"] == list(LABELS)
    assert manifest.configuration["decode"] == "viterbi"
    assert {(s.data, s.records) for s in manifest.scores} == {
        ("PsyTAR test", 4),
        ("ADE corpus fold 1 test", 4),
    }
    assert {v.dtype for v in load_file(release.file("head.safetensors")).values()} == {torch.float16}
    loaded = load(open_release(release.path), dtype="float32")
    counted = counted_transitions(read(corpus, Settings(base=base)))
    assert np.array_equal(loaded.model.decoding.transitions, counted)  # type: ignore[attr-defined]
    (mentions,) = loaded.model.predict(["Zoloft caused rash"])
    assert ("Zoloft", DRUG, "sertraline") in [(m.text, m.label, m.generic) for m in mentions]
    after = Encoder.load(base).model.state_dict()
    assert all(torch.equal(t, after[n]) for n, t in before.items()), "others share these weights"


@pytest.mark.parametrize(
    ("corpora", "split", "named"),
    [
        ("ade", "ade_fold_1", ("ADE corpus fold 1 test", "fold 1 training part")),
        ("ade", "ade_group_3", ("ADE corpus group 3 test", "group 3 training part")),
        ("psytar", "ade_fold_1", ("PsyTAR test", "PsyTAR")),
    ],
)
def test_a_run_on_one_corpus_is_scored_on_that_one(
    corpus: Path, tmp_path: Path, corpora: str, split: str, named: tuple[str, str]
) -> None:
    base = tiny.bert(tmp_path / "base")
    small: dict[str, Any] = {"base": base, "epochs": 1, "batch": 4, "decode": "paper"}
    release = made("ner", data=corpus, output=tmp_path, corpora=corpora, split=split, **small)
    assert TRANSITIONS not in release.manifest.files
    assert NerModel.load(release).decoding == Decoding(), "the paper's decoding has no rules"
    data, source = named
    assert {s.data for s in release.manifest.scores} == {data}
    (trained,) = release.manifest.training_data
    assert source in trained.name


def test_a_run_with_the_teaching_corpus_names_it_and_is_scored_on_the_public_corpora(
    corpus: Path, tmp_path: Path
) -> None:
    base = tiny.bert(tmp_path / "base")
    made("ner", data=corpus, output=tmp_path, base=base, epochs=1, teaching=1.0, limit=5)
    (path,) = (tmp_path / "ner").iterdir()
    manifest = open_release(path).manifest
    assert manifest.configuration["training"]["teaching"] == 1.0
    assert [(d.name, d.licence) for d in manifest.training_data][2:] == [
        ("teaching corpus of pvstream, 5 synthetic texts", "CC0-1.0")
    ]
    assert {s.data for s in manifest.scores} == {"PsyTAR test", "ADE corpus fold 1 test"}


def test_a_part_without_shared_abstracts_is_trained_on_the_others(corpus: Path, tmp_path: Path) -> None:
    part = read(corpus, Settings(corpora="ade", split="ade_group_3"))["clinical"]
    abstracts = read_ade_abstracts(corpus / "ade")
    _, test = split_texts(corpus / "ade", "ade_group_3")
    learnt = {abstracts[t.id] for t in part.train + part.valid}
    assert len(learnt) == 9
    assert not learnt & {abstracts[t.id] for t in test}
    with pytest.raises(typer.BadParameter, match="no split 'ade_group_11'"):
        made("ner", data=corpus, output=tmp_path, split="ade_group_11")


def test_the_event_head_learns_and_is_released(corpus: Path, tmp_path: Path) -> None:
    base = tiny.bert(tmp_path / "base")
    loop = loop_of(base, epochs=4, lr=5e-3, heads=True)
    losses = [epoch.losses["event"] for epoch in loop.epochs()]
    assert losses[-1] < losses[0]
    made("ner", data=corpus, output=tmp_path, base=base, epochs=2, batch=4, heads=True)
    (path,) = (tmp_path / "ner").iterdir()
    model = load(open_release(path), dtype="float32").model
    assert isinstance(model, NerModel)
    assert model.event_head is not None
    assert 0 < model.read(["Zoloft caused rash"]).events()[0][0] < 1
    configuration = open_release(path).manifest.configuration
    tried = configuration["event_weights_tried"]
    assert tried[str(configuration["event_weight"])] == max(tried.values())
    assert model.decoding.event_weight == configuration["event_weight"]


def test_a_release_is_made_again_with_the_names_of_todays_tables(corpus: Path, tmp_path: Path) -> None:
    base = tiny.bert(tmp_path / "base")
    heads: dict[str, Any] = {"heads": True, "teaching": 0.01, "limit": 5}
    first = made("ner", data=corpus, output=tmp_path / "old", base=base, epochs=1, **heads)
    (tmp_path / "referred").mkdir()
    for file in first.manifest.files:
        shutil.copyfile(first.file(file), tmp_path / "referred" / file)
    (tmp_path / "referred" / REFERENCE).write_text("{}")
    (tmp_path / "referred" / "drugs.tsv").write_text("name\tgeneric\nzoloft\tsertraline\n")
    write_names(tmp_path / "referred" / NAMES, ["clap"])
    files = describe(tmp_path / "referred")
    stated = {"files": files, "configuration": first.manifest.configuration | {"alarms": {}}}
    old = build(tmp_path / "referred", first.manifest.model_copy(update=stated), tmp_path / "old")
    new = refreshed([old], Place(corpus, tmp_path / "new", torch.device("cpu")))
    before, after = (NerModel.load(release) for release in (old, new))
    assert before.names is not None and after.names is not None
    assert (len(before.names), len(after.names) > 10_000) == (1, True)
    assert after.names.canonical("Weight gain")
    assert not any(map(after.names.canonical, ("Clap", "ECT", "Hospital stay")))
    assert replace(after.decoding, transitions=None) == replace(before.decoding, transitions=None)
    assert (after.decoding.labels_pooled, after.decoding.named_from) == (True, NAMED_FROM)
    assert after.decoding.withdrawals_named
    assert new.manifest.configuration["like"] == old.version
    assert "alarms" not in new.manifest.configuration
    assert {s.data for s in new.manifest.scores} == {s.data for s in old.manifest.scores}
    assert new.manifest.files.keys() == first.manifest.files.keys()
    changed = {name for name, file in new.manifest.files.items() if old.manifest.files[name] != file}
    assert changed == {NAMES, "drugs.tsv"}
    assert new.file("drugs.tsv").read_bytes() == drugs.BUNDLED.read_bytes()


def test_of_a_terminology_without_frequencies_all_names_but_procedures_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terms = [Term("Rash", "Rash", "Skin"), Term("ECT", "Electroconvulsive therapy", PROCEDURES)]
    monkeypatch.setattr("models.terminology.load", lambda: terms)
    assert event_names() == ["Rash"]
    rated = [*terms, Term("Itch", "Pruritus", "Skin", frequency=5)]
    monkeypatch.setattr("models.terminology.load", lambda: rated)
    assert event_names() == ["Itch"]


def test_the_weights_of_several_releases_are_averaged(corpus: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"base": tiny.bert(tmp_path / "base"), "epochs": 1, "batch": 4, "lr": 5e-3}
    common |= {"data": corpus, "heads": True, "teaching": 0.01, "limit": 5}
    start = made("ner", output=tmp_path / "start", **common)
    one, two = (made("ner", output=tmp_path / str(seed), seed=seed, start=start, **common) for seed in (1, 2))
    mean = refreshed([one, two], Place(corpus, tmp_path / "mean", torch.device("cpu")))
    options = [release.manifest.configuration for release in (one, two, mean)]
    assert options[2]["mean_of"] == [one.version, two.version]
    assert options[2]["event_weight"] == sum(o["event_weight"] for o in options[:2]) / 2
    encoders = [encoder_of(r, packed=False).model.state_dict() for r in (one, two, mean)]
    files = [name for name in mean.manifest.files if name.endswith(".safetensors") and "adapter" not in name]
    assert len(files) == 4
    stored = [{name: load_file(release.file(name)) for name in files} for release in (one, two, mean)]
    tensors = [{"encoder": e, **s} for e, s in zip(encoders, stored, strict=True)]
    for name, middle in tensors[2].items():
        first, second = (t[name] for t in tensors[:2])
        moved = far = 0.0
        for part, tensor in middle.items():
            expected = (first[part].float() + second[part].float()) / 2
            moved = max(moved, float((first[part].float() - expected).abs().max()))
            far = max(far, float((tensor.float() - expected).abs().max()))
        # The changes are rounded to 8 bits, heads to 16.
        assert far < 0.1 * moved, name


def test_releases_whose_heads_began_anew_have_no_mean(corpus: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"data": corpus, "base": tiny.bert(tmp_path / "base"), "epochs": 1, "batch": 4}
    one, other = (made("ner", output=tmp_path / str(seed), seed=seed, **common) for seed in (42, 7))
    with pytest.raises(ReleaseError, match="a stage before must have trained it"):
        refreshed([one, other], Place(corpus, tmp_path, torch.device("cpu")))


def test_a_run_begins_with_the_layers_and_heads_of_a_release(corpus: Path, tmp_path: Path) -> None:
    base = tiny.bert(tmp_path / "base")
    small: dict[str, Any] = {"base": base, "epochs": 1, "lr": 5e-3, "teaching": 0.01, "limit": 5}
    start = made("ner", data=corpus, output=tmp_path, heads=True, **small)
    model, stored = NerModel.load(start), encoder_of(start, packed=False).model
    begun = tagger(loop_of(base, epochs=1, start=start, seed=7, heads=True))
    for before, after in (
        (stored, begun.encoder.model),
        (model.head, begun.head),
        (model.event_head, begun.event_head),
        (model.status_head, begun.status_head),
    ):
        assert before is not None and after is not None
        for name, tensor in before.state_dict().items():
            assert torch.equal(tensor, after.state_dict()[name]), name
    new = tagger(loop_of(base, epochs=1, start=start))
    assert (new.event_head, new.status_head) == (None, None)
    with pytest.raises(ReleaseError, match="no tagger over mini to begin with"):
        loop_of("mini", start=start)
    # It may know the test part of another split.
    with pytest.raises(ReleaseError, match="was trained on ade_fold_1, not on ade_group_1"):
        loop_of(base, start=start, split="ade_group_1")


def test_a_release_that_decodes_in_an_unknown_way_is_refused(tiny_bert: str, tmp_path: Path) -> None:
    release = tiny_release("ner", tiny_bert, tmp_path)
    changed = release.manifest.model_copy(
        update={"configuration": release.manifest.configuration | {"decode": "guess"}}
    )
    with pytest.raises(ReleaseError, match="decode is 'guess', not paper or viterbi"):
        NerModel.load(Release(release.path, changed, release.version))
