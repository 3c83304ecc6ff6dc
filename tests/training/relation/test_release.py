"""Releases that are made by stages of CLNER, CLDR and CLGS: what they hold and relate, and made again."""

from __future__ import annotations

import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from safetensors.torch import load_file, save_file

from models.drift import REFERENCE
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.loading import load
from models.relation.model import SUPPORT, UPPER_ADAPTER, RelationModel
from models.releases.manifest import Canary, Release, ReleaseError
from models.releases.store import build, bundled, describe, open_release
from models.types import ADE, DRUG, Case
from tests.tiny_releases import tiny_release
from tests.training.recipes.runs import made, settings_of
from training.evaluation.relation import gold_mentions
from training.recipes.stages import Place
from training.relation.data import Corpus, examples, read
from training.relation.release import CANARY, TASK
from training.relation.tagger import mention_f1, tagger_of, transitions_of

pytestmark = pytest.mark.matrix


def run(corpus: Path, base: str, output: Path, **more: Any) -> Release:
    small: dict[str, Any] = {"epochs": 1, "batch": 4, "teaching": 0.0, "precision": "float32"}
    return made("relation", data=corpus, base=base, output=output, **small | more)


def texts(corpus: Path, base: str, **more: Any) -> Corpus:
    return read(corpus, asdict(settings_of("relation", base=base, **{"teaching": 0.0} | more)))


@pytest.fixture(scope="module")
def entities(corpus: Path, tiny_bert: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """By CLNER, which knows its training sentences."""
    return run(corpus, tiny_bert, tmp_path_factory.mktemp("entities"), epochs=40, average=1, lr=2e-3)


@pytest.mark.parametrize("objective", ["cldr", "clgs"])
def test_relations_are_learned_over_the_entities_of_the_stage_before(
    objective: str, entities: Release, corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    release = run(corpus, tiny_bert, tmp_path, objective=objective, start=entities)
    files = release.manifest.files
    assert files.keys() == {ADAPTER, UPPER_ADAPTER, SUPPORT, "pairs.tsv", REFERENCE}
    assert files.keys() - entities.manifest.files.keys() == {UPPER_ADAPTER}
    assert files[ADAPTER] == entities.manifest.files[ADAPTER]
    assert all(".layer.1." in name for name in load_file(release.file(UPPER_ADAPTER)))
    stored = load_file(release.file(SUPPORT))
    assert stored.keys() == {"pairs", "related", "pair_projection"}
    assert load_file(entities.file(SUPPORT)).keys() - stored.keys() == {"projection"}
    configuration = release.manifest.configuration
    assert configuration["training"]["before"] == entities.manifest.configuration["training"]
    model: Any = load(release, dtype="float32").model
    assert model.voting.least_cosine == configuration["least_cosine"]
    ids = {pair.sentence for pair in model.support.named}
    assert ids <= {f"ade-{i}" for i in range(16)} | {f"neg-{i}" for i in range(10)}
    scores = {s.name: s for s in release.manifest.scores}
    assert scores["re_strict_macro_f1"].records == 4
    assert all(s.baseline is not None for s in scores.values())


def test_the_words_of_the_stage_before_are_found_again(
    entities: Release, corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    """From its encoder and its projection; they tag the sentences that they are from."""
    encoder = Encoder.load(tiny_bert, adapter=entities.file(ADAPTER))
    projection = load_file(entities.file(SUPPORT))["projection"].float().numpy()
    read_texts = texts(corpus, tiny_bert)
    first, again = (tagger_of(encoder, projection, read_texts, 42, joint=True) for _ in "ab")
    assert np.array_equal(first.words, again.words) and np.array_equal(first.tags, again.tags)
    assert np.array_equal(first.projection, projection)
    assert first.k == again.k
    data = examples(read_texts.train, encoder)
    assert first.transitions is not None
    assert np.array_equal(first.transitions, transitions_of(data))
    assert set(first.tags) <= {0, 2, 3, 4, 5}
    assert mention_f1(first.tag(data), data) > 0.9


def test_a_release_relates_what_it_was_trained_on_and_says_why(
    entities: Release, corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    gold = texts(corpus, tiny_bert).train[0]
    later = run(corpus, tiny_bert, tmp_path, objective="cldr", epochs=3, start=entities)
    for release in (entities, later):
        case = Case(gold.text, gold_mentions(gold))
        ((one,),) = load(release, dtype="float32").model.predict([case])
        assert (case.mentions[one.head].label, case.mentions[one.tail].label) == (DRUG, ADE)
        assert one.neighbours[0].id == gold.id
        assert one.neighbours[0].related
        assert {m.text for m in case.mentions} == {one.neighbours[0].drug, one.neighbours[0].effect}
        assert one.neighbours[0].distance == pytest.approx(0, abs=1e-2)
        assert np.all(np.diff([n.distance for n in one.neighbours]) >= 0)


def test_the_scores_of_the_mentions_are_printed(
    corpus: Path, tiny_bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(corpus, tiny_bert, tmp_path)
    assert re.search(
        r"mentions of ade_fold_1: strict macro F1 [01]\.\d{4}, micro [01]\.\d{4}", capsys.readouterr().out
    )


def test_the_papers_setting_reads_no_negative(corpus: Path, tiny_bert: str, tmp_path: Path) -> None:
    """Relations without entities of a stage before: those are of the base as it is."""
    paper = {"negatives": 0, "heads": False, "average": 0, "objective": "cldr"}
    release = run(corpus, tiny_bert, tmp_path, **paper)
    assert ADAPTER not in release.manifest.files
    model: Any = load(release, dtype="float32").model
    assert not any(pair.sentence.startswith("neg-") for pair in model.support.named)
    assert (~model.support.related).sum() == 2 * model.support.related.sum()
    assert len(release.manifest.training_data) == 1


def test_what_a_run_cannot_begin_with_is_refused(
    entities: Release, corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    with pytest.raises(typer.BadParameter, match="only the first stage"):
        run(corpus, tiny_bert, tmp_path, start=entities)
    tagger, relations = (tiny_release(task, tiny_bert, tmp_path) for task in ("ner", "relation"))
    with pytest.raises(ReleaseError, match="no relation release over"):
        run(corpus, tiny_bert, tmp_path, objective="cldr", start=tagger)
    with pytest.raises(ReleaseError, match="no release of CLNER"):
        run(corpus, tiny_bert, tmp_path, objective="cldr", start=relations)
    with pytest.raises(typer.BadParameter, match="no split 'ade_fold_0'"):
        run(corpus, tiny_bert, tmp_path, split="ade_fold_0")


def test_a_run_with_the_teaching_corpus_learns_from_its_pairs_and_names_it(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    release = run(corpus, tiny_bert, tmp_path, teaching=0.05)
    train = texts(corpus, tiny_bert, teaching=0.05).train
    taught = [t for t in train if t.id.startswith("teaching-")]
    name = f"teaching corpus of pvstream, {len(taught)} synthetic texts"
    assert release.manifest.training_data[-1].name == name
    model: Any = load(release, dtype="float32").model
    written = {p.sentence: p.source for p in model.support.named if p.sentence.startswith("teaching-")}
    assert {t.id: t.text for t in taught if t.relations}.items() <= written.items()
    public = [p.source for p in model.support.named if p.sentence not in written]
    assert public
    assert all(source.startswith("PubMed ") for source in public)


def test_a_release_whose_tensors_do_not_fit_is_refused(entities: Release, tmp_path: Path) -> None:
    shutil.copytree(entities.path, tmp_path / "own")
    release = Release(tmp_path / "own", entities.manifest, entities.version)
    tensors = load_file(release.file(SUPPORT))
    for name in ("pairs", "related", "pair_projection"):
        save_file(tensors | {name: tensors[name][:-1]}, tmp_path / "own" / SUPPORT)
        with pytest.raises(ReleaseError, match="does not fit"):
            RelationModel.load(release)


def test_a_release_that_is_made_again_holds_what_todays_hold(
    entities: Release, corpus: Path, tmp_path: Path
) -> None:
    """Also one of an earlier version, with words and drug names, and a canary of texts alone."""
    shutil.copytree(entities.path, tmp_path / "old", ignore=shutil.ignore_patterns("manifest.json"))
    (tmp_path / "old/drugs.tsv").write_text("name\tgeneric\nzoloft\tsertraline\n")
    words = {"words": torch.zeros(3, 64), "tags": torch.zeros(3)}
    save_file(load_file(entities.file(SUPPORT)) | words, tmp_path / "old" / SUPPORT)
    manifest = entities.manifest
    changes = {
        "files": describe(tmp_path / "old"),
        "kind": "nearest training words and pairs",
        "configuration": manifest.configuration | {"k_words": 7},
        "canary": Canary(inputs=["Rash."], outputs=[{"mentions": [], "relations": []}]),
    }
    old = build(tmp_path / "old", manifest.model_copy(update=changes), tmp_path)
    refresh = TASK.refresh
    assert refresh is not None
    new = refresh(old, Place(corpus, tmp_path / "new", torch.device("cpu")))
    assert new.manifest.files == manifest.files
    assert new.manifest.canary == manifest.canary
    assert new.manifest.kind == manifest.kind
    assert new.manifest.configuration == manifest.configuration | {"like": old.version}
    assert [s.name for s in new.manifest.scores] == [s.name for s in manifest.scores]
    assert load(new, dtype="float32").version == new.version


def test_the_bundled_release_answers_the_canary_with_relations() -> None:
    model = RelationModel.load(open_release(bundled("relation")))
    found = [[(r.head, r.tail) for r in own] for own in model.predict(CANARY)]
    assert found == [[(0, 1)], [(1, 0)], []]
