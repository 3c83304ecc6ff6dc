"""Encoders that the tests of models share; no test changes their weights."""

from __future__ import annotations

import pytest

from tests.models import tiny


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.roberta(tmp_path_factory.mktemp("roberta"))
