"""The releases that come with the code."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

import models
from models.encoder import mpnet
from models.loading import load, number_formats
from models.releases.manifest import NO_BASE
from models.releases.store import open_release
from models.types import JUDGE, RELEASED
from training.acronym.data import CORPORA
from training.idiom.release import SEMEVAL

ROOT = Path(models.__file__).parent / "pretrained"
PATHS = sorted(
    p for task in RELEASED for p in (ROOT / task).glob("*") if p.is_dir() and not p.name.startswith(".")
)
TRAINED = ("ner", "relation", "normalization", "acronym", "summarization", JUDGE)
RESTRICTED = re.compile(r"\bNC\b|non-?commercial|\bA?GPL", re.IGNORECASE)
#: Of one release, and of all of them: a package of PyPI has at most 100 MB, compressed.
MAX_BYTES, MAX_BYTES_TOGETHER = 70 * 10**6, 100 * 10**6
#: With the processor's fastest number format, and in 32 bits where that is another one.
DTYPES = ["auto"] if number_formats("cpu") == ["float32"] else ["auto", "float32"]

each = pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}-{p.name}")


def test_every_task_has_exactly_one_release_and_there_is_nothing_else() -> None:
    assert {t: sum(p.parent.name == t for p in PATHS) for t in RELEASED} == dict.fromkeys(RELEASED, 1)
    assert {p.name for p in ROOT.glob("*")} <= set(RELEASED)


@each
def test_a_manifest_states_the_place_base_code_data_and_scores_of_its_release(path: Path) -> None:
    release = open_release(path)
    manifest = release.manifest
    assert (release.task, release.version) == (path.parent.name, path.name)
    base = {JUDGE: mpnet.NAME, "acronym": NO_BASE}.get(release.task, "mini")
    assert (manifest.base, manifest.base_sha256 is None) == (base, base == NO_BASE)
    assert manifest.code_commit not in ("", "unknown")
    assert manifest.scores
    for score in manifest.scores:
        assert all(part.strip() for part in (score.definition, score.baseline_definition, score.data))
        assert score.records > 0
    assert bool(manifest.training_data) is (release.task in TRAINED)
    assert all(source.name.strip() and source.licence.strip() for source in manifest.training_data)
    assert [s.name for s in manifest.training_data if RESTRICTED.search(s.licence)] == [], "not for everyone"


def test_the_licences_of_the_optional_corpora_are_seen_as_restricted() -> None:
    optional = [CORPORA["sdu22_scientific"], CORPORA["sdu22_legal"], SEMEVAL]
    assert all(RESTRICTED.search(source.licence) for source in optional)
    assert not any(RESTRICTED.search(own) for own in ("CC BY 4.0", "CC0-1.0", "none stated, citation asked"))


def test_releases_are_small_enough_for_a_package() -> None:
    sizes = {path.parent.name: sum(file.stat().st_size for file in path.iterdir()) for path in PATHS}
    assert [task for task, size in sizes.items() if size >= MAX_BYTES] == []
    packed = sum(len(zlib.compress(file.read_bytes())) for path in PATHS for file in path.iterdir())
    assert packed < MAX_BYTES_TOGETHER


@each
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_release_loads_and_passes_its_canary_check(path: Path, dtype: str) -> None:
    release = open_release(path)
    if release.task == JUDGE and not mpnet.is_installed():
        pytest.skip("the packages of deploy/judge-base.txt are not installed")
    loaded = load(release, dtype=dtype)
    assert release.manifest.canary.inputs
    assert loaded.version == release.version
    assert loaded.passes_canary()
