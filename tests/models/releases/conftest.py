"""A release, stores for it, and a folder to fetch into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from models.releases.manifest import Release
from models.releases.store import build
from tests.models.releases.small_release import CONTENTS, manifest_of


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with the files of a release."""
    folder = tmp_path / "source"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def release(source: Path, tmp_path: Path) -> Release:
    return build(source, manifest_of(source), tmp_path / "root")


@pytest.fixture
def memory() -> Iterator[str]:
    """The URL of a store in memory that no other test uses."""
    root = f"memory://{uuid4().hex}"
    yield root
    fs = MemoryFileSystem()
    if fs.exists(root):
        fs.rm(root, recursive=True)


@pytest.fixture(params=["directory", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path, memory: str) -> str:
    return str(tmp_path / "store") if request.param == "directory" else memory


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder
