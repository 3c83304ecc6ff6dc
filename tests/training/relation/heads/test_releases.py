"""Releases with heads, from the program that trains them: what they hold, and what older ones answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from models.drift import REFERENCE
from models.encoder.weights import ADAPTER
from models.relation.model import RelationModel
from models.relation.neighbours import HEAD
from models.relation.sentence_head import SENTENCE_ADAPTER, SENTENCE_HEAD
from models.relation.spaces import UPPER_ADAPTER
from models.relation.voting import Voting
from models.releases.loading import load
from models.releases.manifest import Release, ReleaseError
from models.releases.store import bundled, open_release
from models.releases.tensors import read_tensors
from tests.training.relation.test_program import only_release
from training.relation.__main__ import main
from training.relation.data import TAGS
from training.relation.support_set import PAPER_PAIRS

SIZES: dict[str, Any] = {"width": 8, "rank": 4, "pair_rank": 4, "dimension": 6, "pair_dimension": 6}


def trained(corpus: Path, base: str, output: Path, **options: Any) -> Release:
    main(
        data=corpus, output=output, base=base, batch=4, words=60, precision="float32", sentence_teaching=0.0,
        **({"epochs": 1, "pair_epochs": 1} | SIZES | options),
    )  # fmt: skip
    return only_release(output)


@pytest.fixture(scope="module")
def release(corpus: Path, tiny_bert: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Without a sentence head."""
    return trained(corpus, tiny_bert, tmp_path_factory.mktemp("releases"))


def test_the_head_of_the_cross_entropy_is_kept_and_its_share_is_stated(release: Release) -> None:
    model: Any = load(release, dtype="float32").model
    assert model.support.head.weight.shape == (len(TAGS), model.encoder.dimension)
    assert model.voting.words_share == release.manifest.configuration["words_share"]
    assert model.sentence_head is None
    assert model.voting.threshold == 0.5


def test_a_release_may_start_with_the_encoders_of_another_and_add_a_sentence_head(
    release: Release, corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    start = str(release.path)
    added = trained(corpus, tiny_bert, tmp_path, start=start, sentence_epochs=1)
    for name in (ADAPTER, UPPER_ADAPTER):
        assert added.file(name).read_bytes() == release.file(name).read_bytes()
    assert {SENTENCE_ADAPTER, SENTENCE_HEAD} <= added.manifest.files.keys()
    tensors, first = (read_tensors(r.file("support.safetensors")) for r in (added, release))
    assert all(np.array_equal(tensors[name], first[name]) for name in (*HEAD, "projection"))
    model: Any = load(added, dtype="float32").model
    assert model.sentence_head is not None
    assert model.voting.event_threshold == added.manifest.configuration["event_threshold"]
    with pytest.raises(ReleaseError, match="--start needs"):
        trained(corpus, tiny_bert, tmp_path / "other", start=start, split="ade_group_1")


def test_clner_may_learn_the_head_of_sentences_itself_and_a_release_keeps_it(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    own = trained(corpus, tiny_bert, tmp_path / "own", event=1.0)
    assert SENTENCE_HEAD in own.manifest.files
    assert SENTENCE_ADAPTER not in own.manifest.files
    model: Any = load(own, dtype="float32").model
    assert model.sentence_head.upper is None
    assert model.voting.event_threshold == own.manifest.configuration["event_threshold"]
    encoded = model.spaces.encode([["Clozapine", "caused", "agranulocytosis"], []])
    first, empty = model.sentence_head.probabilities(encoded)
    assert 0 < first < 1
    assert empty == 0
    continued = trained(corpus, tiny_bert, tmp_path / "continued", start=str(own.path))
    assert continued.file(SENTENCE_HEAD).read_bytes() == own.file(SENTENCE_HEAD).read_bytes()
    replaced = trained(corpus, tiny_bert, tmp_path / "replaced", start=str(own.path), sentence_epochs=1)
    assert SENTENCE_ADAPTER in replaced.manifest.files
    assert replaced.file(SENTENCE_HEAD).read_bytes() != own.file(SENTENCE_HEAD).read_bytes()


def test_a_sentence_head_may_be_added_to_a_release_whose_support_and_votes_stay(
    release: Release, corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    kept: dict[str, Any] = {"start": str(release.path), "keep_support": True}
    added = trained(corpus, tiny_bert, tmp_path, **kept, sentence_epochs=1)
    for name in release.manifest.files.keys() - {REFERENCE}:
        assert added.file(name).read_bytes() == release.file(name).read_bytes()
    ours, theirs = added.manifest.configuration, release.manifest.configuration
    assert all(ours[name] == theirs[name] for name in ("k_words", "k_pairs", "vote", "words_share"))
    new, old = (RelationModel.load(r) for r in (added, release))
    texts = [str(text) for text in release.manifest.canary.inputs]
    for gated, plain in zip(new.predict(texts), old.predict(texts), strict=True):
        assert gated.mentions == plain.mentions
        assert {(r.head, r.tail) for r in gated.relations} <= {(r.head, r.tail) for r in plain.relations}
    assert release.manifest.training_data[0] in added.manifest.training_data
    with pytest.raises(typer.BadParameter, match="--keep-support needs"):
        trained(corpus, tiny_bert, tmp_path / "other", **kept)


def test_decoding_as_in_the_paper_leaves_each_word_to_its_neighbours(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    model: Any = load(trained(corpus, tiny_bert, tmp_path, decode="paper"), dtype="float32").model
    assert model.support.transitions is None
    assert model.support.head is None
    assert model.voting.words_share == 1


def test_a_release_that_states_neither_share_nor_threshold_answers_by_its_neighbours_alone(
    release: Release, tmp_path: Path
) -> None:
    """Releases from before the heads have none of these entries."""
    folder = tmp_path / "old"
    shutil.copytree(release.path, folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for name in ("words_share", "threshold"):
        del manifest["configuration"][name]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    old, new = (RelationModel.load(open_release(path)) for path in (folder, release.path))
    assert old.voting == Voting(new.voting.k_words, new.voting.k_pairs)
    new.voting = old.voting
    texts = [str(text) for text in release.manifest.canary.inputs]
    assert old.predict(texts) == new.predict(texts)


def test_the_bundled_release_has_both_heads_and_passes_its_canary_check() -> None:
    opened = open_release(bundled("relation"))
    model: Any = load(opened, dtype="float32").model
    assert model.support.head.weight.shape == (len(TAGS), model.encoder.dimension)
    assert 0 < model.voting.words_share < 1
    assert model.sentence_head.upper is None
    assert 0.5 < model.voting.event_threshold < 1
    assert model.voting.k_pairs >= PAPER_PAIRS
