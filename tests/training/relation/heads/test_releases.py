"""Releases with heads, from the program that trains them: what they hold, and what older ones answer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from models import drugs
from models.drift import REFERENCE
from models.loading import load
from models.relation.sentence_head import SENTENCE_HEAD
from models.releases.manifest import Release, ReleaseError
from models.releases.store import build, bundled, describe, open_release
from tests.tiny_releases import tiny_release
from tests.training.relation.test_program import only_release
from training.relation.__main__ import main
from training.relation.data import TAGS
from training.relation.support_set import PAPER_PAIRS


def trained(corpus: Path, base: str, output: Path, **options: Any) -> Release:
    main(
        data=corpus, output=output, base=base, batch=4, precision="float32",
        **({"epochs": 1, "pair_epochs": 1} | options),
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


def test_clner_may_learn_the_head_of_sentences_itself_and_a_release_keeps_it(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    own = trained(corpus, tiny_bert, tmp_path / "own", event=1.0)
    assert SENTENCE_HEAD in own.manifest.files
    model: Any = load(own, dtype="float32").model
    assert model.voting.event_threshold == own.manifest.configuration["event_threshold"]
    encoded = model.spaces.encode([["Clozapine", "caused", "agranulocytosis"], []])
    first, empty = model.sentence_head.probabilities(encoded)
    assert 0 < first < 1
    assert empty == 0


def test_decoding_as_in_the_paper_leaves_each_word_to_its_neighbours(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    model: Any = load(trained(corpus, tiny_bert, tmp_path, decode="paper"), dtype="float32").model
    assert model.support.transitions is None
    assert model.support.head is None
    assert model.voting.words_share == 1


def test_the_bundled_release_has_both_heads_and_passes_its_canary_check() -> None:
    opened = open_release(bundled("relation"))
    model: Any = load(opened, dtype="float32").model
    assert model.support.head.weight.shape == (len(TAGS), model.encoder.dimension)
    assert 0 < model.voting.words_share < 1
    assert 0.5 < model.voting.event_threshold < 1
    assert model.voting.k_pairs >= PAPER_PAIRS


def test_a_release_that_is_made_again_differs_in_drug_names_and_measures_alone(
    release: Release, corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(release.path, tmp_path / "old", ignore=shutil.ignore_patterns("manifest.json"))
    (tmp_path / "old/drugs.tsv").write_text("name\tgeneric\nzoloft\tsertraline\n")
    files = describe(tmp_path / "old")
    old = build(tmp_path / "old", release.manifest.model_copy(update={"files": files}), tmp_path)
    main(data=corpus, output=tmp_path / "new", like=old.path)
    new = only_release(tmp_path / "new")
    changed = {name for name, file in new.manifest.files.items() if old.manifest.files[name] != file}
    assert changed == {"drugs.tsv"}
    assert REFERENCE in new.manifest.files
    assert new.file("drugs.tsv").read_bytes() == drugs.BUNDLED.read_bytes()
    assert new.manifest.configuration == old.manifest.configuration | {"like": old.version}
    assert [s.name for s in new.manifest.scores] == [s.name for s in old.manifest.scores]
    model: Any = load(new, dtype="float32").model
    assert model.lexicon.generic("Paxil") == "paroxetine"


def test_a_release_of_another_task_is_not_made_again(corpus: Path, tiny_bert: str, tmp_path: Path) -> None:
    tagger = tiny_release("ner", tiny_bert, tmp_path)
    with pytest.raises(ReleaseError, match="a release of ner, not of relation"):
        main(data=corpus, output=tmp_path, like=tagger.path)
