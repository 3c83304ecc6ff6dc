"""Which releases a run may build on: none that may know its test part."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from models.releases.manifest import Release, ReleaseError
from models.releases.store import open_release
from tests.models import tiny
from tests.training.recipes.runs import made
from training.ner.releases import check_split

pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.bert(tmp_path_factory.mktemp("begun") / "base")


@pytest.fixture(scope="module")
def first(base: str, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The release of a run on fold 1."""
    output = tmp_path_factory.mktemp("begun")
    made("ner", data=corpus, output=output, base=base, epochs=1, batch=4)
    (folder,) = (output / "ner").iterdir()
    return open_release(folder)


@pytest.mark.parametrize(
    ("trained", "more", "fits"),
    [
        ({"split": "ade_group_1"}, {}, True),
        ({"split": "ade_fold_1"}, {}, False),
        ({"split": "ade_fold_1", "corpora": "psytar"}, {}, True),
        ({"split": "ade_fold_1", "corpora": "psytar", "teachers": "runs/first"}, {}, False),
        ({"split": "ade_fold_1", "corpora": "psytar"}, {"mean_of": ["a", "b"]}, False),
    ],
)
def test_a_tagger_without_the_ade_corpus_fits_every_split_unless_another_one_taught_it(
    first: Release, trained: dict[str, Any], more: dict[str, Any], fits: bool
) -> None:
    manifest = first.manifest.model_copy(update={"configuration": {"training": trained} | more})
    release = Release(first.path, manifest, first.version)
    with nullcontext() if fits else pytest.raises(ReleaseError, match="was trained on ade_fold_1"):
        check_split(release, "ade_group_1")


def test_a_run_does_not_begin_with_a_tagger_that_may_know_its_test_part(
    base: str, first: Release, corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match="was trained on ade_fold_1, not on ade_group_1"):
        made(
            "ner",
            data=corpus,
            output=tmp_path,
            base=base,
            epochs=1,
            split="ade_group_1",
            start=first,
        )
