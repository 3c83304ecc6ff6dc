"""Encoders and corpora that many tests share, none of which changes the encoders' weights, and a folder for
the state of each test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from models.encoder.model import Encoder
from tests.models import tiny
from tests.small_corpora import corpus, data, small

__all__ = ["corpus", "data", "small"]


@pytest.fixture(scope="session")
def mini() -> Encoder:
    return Encoder.load("mini")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the workers of this test keep what they must remember."""
    monkeypatch.setenv("PV_STATE", str(tmp_path / "state"))
    return tmp_path / "state"
