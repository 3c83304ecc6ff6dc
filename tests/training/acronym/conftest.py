"""The small corpus of acronyms, written once for all tests of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.acronym.corpus import write_corpus


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("acronyms"))
