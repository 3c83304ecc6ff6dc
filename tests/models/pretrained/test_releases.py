"""The releases that come with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import models
from models.loading import load, number_formats
from models.releases.manifest import Release
from models.releases.store import open_release
from models.types import TASKS
from training.acronym.data import CORPORA
from training.idiom.assemble import SEMEVAL

ROOT = Path(models.__file__).parent / "pretrained"
PATHS = sorted(
    p for task in TASKS for p in (ROOT / task).glob("*") if p.is_dir() and not p.name.startswith(".")
)
TRAINED = ("ner", "relation", "normalization", "acronym", "summarization")
RESTRICTED = re.compile(r"\bNC\b|non-?commercial|\bA?GPL", re.IGNORECASE)
#: Of one release, and of all of them: a package of PyPI has at most 100 MB, compressed.
MAX_BYTES, MAX_BYTES_TOGETHER = 60 * 10**6, 100 * 10**6
#: With the processor's fastest number format, and in 32 bits where that is another one.
DTYPES = ["auto"] if number_formats("cpu") == ["float32"] else ["auto", "float32"]

each = pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}-{p.name}")


def test_every_task_has_exactly_one_release() -> None:
    assert {task: sum(p.parent.name == task for p in PATHS) for task in TASKS} == dict.fromkeys(TASKS, 1)


def test_the_folder_of_releases_contains_only_tasks() -> None:
    assert {p.name for p in ROOT.glob("*")} <= set(TASKS)


@pytest.fixture
def release(path: Path) -> Release:
    return open_release(path)


@each
def test_a_release_is_in_the_folder_of_its_task_and_version(path: Path, release: Release) -> None:
    assert (release.task, release.version) == (path.parent.name, path.name)


@each
def test_every_score_has_a_definition_data_and_a_baseline(release: Release) -> None:
    assert release.manifest.scores
    for score in release.manifest.scores:
        assert score.definition.strip()
        assert score.baseline_definition.strip()
        assert score.data.strip()
        assert score.records > 0


@each
def test_training_data_has_a_name_and_a_licence(release: Release) -> None:
    sources = release.manifest.training_data
    assert all(source.name.strip() and source.licence.strip() for source in sources)
    assert bool(sources) is (release.task in TRAINED)


@each
def test_no_release_learned_from_data_that_not_everyone_may_use(release: Release) -> None:
    assert [s.name for s in release.manifest.training_data if RESTRICTED.search(s.licence)] == []


def test_the_licences_of_the_optional_corpora_are_seen_as_restricted() -> None:
    optional = [CORPORA["sdu22_scientific"], CORPORA["sdu22_legal"], SEMEVAL]
    assert all(RESTRICTED.search(source.licence) for source in optional)
    assert not any(RESTRICTED.search(own) for own in ("CC BY 4.0", "CC0-1.0", "none stated, citation asked"))


@each
def test_a_release_states_its_base_and_its_code(release: Release) -> None:
    assert release.manifest.base == "mini"
    assert release.manifest.base_sha256 is not None
    assert release.manifest.code_commit not in ("", "unknown")


@each
def test_a_release_is_small_enough_for_a_package(path: Path) -> None:
    assert _bytes(path) < MAX_BYTES


def test_all_releases_are_small_enough_for_a_package() -> None:
    assert sum(map(_bytes, PATHS)) < MAX_BYTES_TOGETHER


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


@each
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_release_loads_and_passes_its_canary_check(release: Release, dtype: str) -> None:
    loaded = load(release, dtype=dtype)
    assert release.manifest.canary.inputs
    assert loaded.version == release.version
    assert loaded.passes_canary()
