"""Encoders, releases and corpora that many tests share, none of which changes them, and a folder for the
state of each test.

The model libraries are imported by the fixtures that use them: the process that only hands tests to others
starts seconds sooner.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from models.process import prepare
from models.releases import store
from models.releases.manifest import Release
from models.types import TASKS
from streams.stopping import freeze
from tests.small_corpora import corpus, data, small

if TYPE_CHECKING:
    from models.encoder.model import Encoder

prepare()
__all__ = ["corpus", "data", "small"]
SHIPPED = store.BUNDLED
# Whether the base of a judge is on this machine must not decide what a test sees; tests of judges say so.
os.environ["PV_JUDGE"] = "off"

# A busy machine makes any example slow; what takes too long is seen in the durations of the tests.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_collection_finish() -> None:
    """What imports created stays for good, and no full garbage collection of a test needs to visit it."""
    freeze()


@pytest.fixture(scope="session")
def mini() -> Encoder:
    from models.encoder.model import Encoder  # noqa: PLC0415  a model library

    return Encoder.load("mini")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.models import tiny as tiny_models  # noqa: PLC0415  a model library

    return tiny_models.bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def tiny_mpnet(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.models import tiny as tiny_models  # noqa: PLC0415  a model library

    return tiny_models.mpnet(tmp_path_factory.mktemp("mpnet"))


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for each next test; none is made before somebody writes there."""
    root = tmp_path_factory.mktemp("states")
    return (root / str(number) for number in count())


@pytest.fixture(autouse=True)
def state(states: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the workers of this test keep what they must remember."""
    folder = next(states)
    monkeypatch.setenv("PV_STATE", str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture(scope="session")
def tiny(tiny_bert: str, tiny_root: Path) -> dict[str, Release]:
    """Task to a tiny release, in a folder like that of the bundled releases."""
    from tests.tiny_releases import tiny_release  # noqa: PLC0415  a model library

    return {task: tiny_release(task, tiny_bert, tiny_root) for task in TASKS}


@pytest.fixture(scope="module")
def tiny_bundled(tiny: dict[str, Release], tiny_root: Path) -> Iterator[None]:
    """Tiny releases take the place of the bundled ones, for all tests of a file."""
    assert set(tiny) == set(TASKS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "BUNDLED", tiny_root)
        yield


@pytest.fixture
def shipped_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The releases that ship with the code, after all."""
    monkeypatch.setattr(store, "BUNDLED", SHIPPED)
