"""Releases that are made by stages of CLNER, CLDR and CLGS: what they hold and relate, and made again."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from safetensors.torch import load_file, save_file

from models import drugs
from models.drift import REFERENCE
from models.encoder.weights import ADAPTER
from models.loading import load
from models.relation.model import RelationModel
from models.relation.spaces import UPPER_ADAPTER
from models.relation.support_set import votes
from models.releases.manifest import Release, ReleaseError
from models.releases.store import build, describe
from models.types import ADE, DRUG
from tests.tiny_releases import tiny_release
from tests.training.recipes.runs import made, settings_of
from training.recipes.stages import Place
from training.relation.data import TAGS, Corpus, examples, read
from training.relation.release import TASK
from training.relation.support import transitions_of

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
    assert ADAPTER in entities.manifest.files.keys() < files.keys()
    assert files.keys() - entities.manifest.files.keys() == {UPPER_ADAPTER}
    assert files[ADAPTER] == entities.manifest.files[ADAPTER]
    assert all(".layer.1." in name for name in load_file(release.file(UPPER_ADAPTER)))
    configuration = release.manifest.configuration
    assert configuration["training"]["before"] == entities.manifest.configuration["training"]
    model: Any = load(release, dtype="float32").model
    learnt = examples(texts(corpus, tiny_bert).train, model.spaces.encoder)
    assert np.array_equal(model.support.transitions, transitions_of(learnt))
    assert model.voting.least_cosine == configuration["least_cosine"]
    assert set(model.support.tags) <= {0, 2, 3, 4, 5}
    ids = {pair.sentence for pair in model.support.named}
    assert ids <= {f"ade-{i}" for i in range(16)} | {f"neg-{i}" for i in range(10)}
    scores = {s.name: s for s in release.manifest.scores}
    assert scores["re_strict_macro_f1"].records == 4
    assert all(s.baseline is not None for s in scores.values())


def test_a_release_relates_what_it_was_trained_on_and_says_why(
    entities: Release, corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    release = run(corpus, tiny_bert, tmp_path, objective="cldr", epochs=3, start=entities)
    gold = texts(corpus, tiny_bert).train[0]
    (found,) = load(release, dtype="float32").model.predict([gold.text])
    assert {(m.start, m.end, m.label) for m in found.mentions} == {
        (m.start, m.end, m.label) for m in gold.mentions
    }
    (one,) = found.relations
    assert (found.mentions[one.head].label, found.mentions[one.tail].label) == (DRUG, ADE)
    assert one.neighbours[0].id == gold.id
    assert one.neighbours[0].related
    assert {gold.text[m.start : m.end] for m in gold.mentions} == {
        one.neighbours[0].drug,
        one.neighbours[0].effect,
    }
    assert one.neighbours[0].distance == pytest.approx(0, abs=1e-2)
    assert np.all(np.diff([n.distance for n in one.neighbours]) >= 0)


def test_the_papers_setting_leaves_each_word_to_its_neighbours_and_reads_no_negative(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    """Relations without entities of a stage before: those are of the base as it is."""
    paper = {"negatives": 0, "heads": False, "average": 0, "objective": "cldr"}
    release = run(corpus, tiny_bert, tmp_path, **paper)
    assert ADAPTER not in release.manifest.files
    model: Any = load(release, dtype="float32").model
    assert model.support.transitions is None
    assert not any(pair.sentence.startswith("neg-") for pair in model.support.named)
    assert (~model.support.related).sum() == 2 * model.support.related.sum()
    assert len(release.manifest.training_data) == 1


def test_what_a_run_cannot_begin_with_is_refused(
    entities: Release, corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    with pytest.raises(typer.BadParameter, match="only the first stage"):
        run(corpus, tiny_bert, tmp_path, start=entities)
    tagger = tiny_release("ner", tiny_bert, tmp_path)
    with pytest.raises(ReleaseError, match="no relation release over"):
        run(corpus, tiny_bert, tmp_path, objective="cldr", start=tagger)
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


def test_a_release_without_transitions_is_read_one_with_not(entities: Release, tmp_path: Path) -> None:
    shutil.copytree(entities.path, tmp_path / "own")
    support = tmp_path / "own/support.safetensors"
    release = Release(tmp_path / "own", entities.manifest, entities.version)
    tensors = load_file(support)
    one = tensors.pop("transitions")
    save_file(tensors, support)
    model = RelationModel.load(release)
    assert model.support.transitions is None
    tags, shares = model.tag_words(model.support.words, [len(model.support.words)])
    _, rows = model._word_index.search(model.support.words, model.voting.k_words)
    alone = votes(model.support.tags[rows], len(TAGS))
    assert tags.tolist() == alone.argmax(1).tolist()
    assert shares.tolist() == alone.max(1).tolist()
    save_file(tensors | {"transitions": one[:-1]}, support)
    with pytest.raises(ReleaseError, match="does not fit"):
        RelationModel.load(release)


def test_a_release_that_is_made_again_differs_in_drug_names_and_measures_alone(
    entities: Release, corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(entities.path, tmp_path / "old", ignore=shutil.ignore_patterns("manifest.json"))
    (tmp_path / "old/drugs.tsv").write_text("name\tgeneric\nzoloft\tsertraline\n")
    files = describe(tmp_path / "old")
    old = build(tmp_path / "old", entities.manifest.model_copy(update={"files": files}), tmp_path)
    refresh = TASK.refresh
    assert refresh is not None
    new = refresh(old, Place(corpus, tmp_path / "new", torch.device("cpu")))
    changed = {name for name, file in new.manifest.files.items() if old.manifest.files[name] != file}
    assert changed == {"drugs.tsv"}
    assert REFERENCE in new.manifest.files
    assert new.file("drugs.tsv").read_bytes() == drugs.BUNDLED.read_bytes()
    assert new.manifest.configuration == old.manifest.configuration | {"like": old.version}
    assert [s.name for s in new.manifest.scores] == [s.name for s in old.manifest.scores]
    model: Any = load(new, dtype="float32").model
    assert model.lexicon.generic("Paxil") == "paroxetine"
