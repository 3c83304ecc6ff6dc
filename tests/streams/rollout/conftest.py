"""Fixtures for the tests of loading and reloading."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from models.releases.manifest import Canary
from models.releases.store import build, bundled, open_release
from streams import metrics
from tests.streams.rollout.reloading import Store
from tests.variants import variant
from training.evaluation.posts import corpus


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("store")
    one, two, three = (variant("summarization", root, note).version for note in ("one", "two", "three"))
    original = open_release(bundled("summarization"))
    canary = Canary(inputs=["Is tea fine?"], outputs=[{"text": "No."}])
    failing = build(original.path, original.manifest.model_copy(update={"canary": canary}), root)
    return Store(root, (one, two, three), failing.version)


@pytest.fixture
def few_posts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate compares on the first 150 held-out posts instead of all 748."""
    read = corpus.teaching
    monkeypatch.setattr(corpus, "teaching", lambda _: read(150))


@pytest.fixture
def empty_gauge() -> Iterator[None]:
    """Removes the series of other tests from the gauges of live releases."""
    metrics.MODEL.clear()
    metrics.FALLBACK.clear()
    yield
    metrics.MODEL.clear()
    metrics.FALLBACK.clear()
