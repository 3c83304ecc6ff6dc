"""A workspace for the commands of the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.workspace import Workspace


@pytest.fixture(scope="session")
def workspace(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("docs"), data)
