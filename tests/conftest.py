"""Encoders and corpora that many tests share; no test changes the encoders' weights."""

from __future__ import annotations

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
