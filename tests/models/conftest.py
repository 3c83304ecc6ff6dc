"""Encoders that the tests of models share; no test changes their weights."""

from __future__ import annotations

import pytest

from models.encoder.model import Encoder
from tests.models import tiny


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.roberta(tmp_path_factory.mktemp("roberta"))


@pytest.fixture(scope="session")
def small(tiny_bert: str) -> Encoder:
    """The tiny BERT with windows of 30 pieces."""
    return Encoder.load(tiny_bert, max_pieces=32)
