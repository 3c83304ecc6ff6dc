"""What tests do with stores of releases: write, change and remove files, and expect refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fsspec.implementations.memory import MemoryFileSystem

from models.releases.manifest import MANIFEST, Release, ReleaseError, version_of

KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)


def contents(folder: Path) -> dict[str, bytes]:
    """Each file's content by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def put(root: str, release: Release, name: str, content: bytes) -> None:
    """Writes a file into a release's folder in a store, without any check."""
    with fsspec.open(f"{root}/{release.task}/{release.version}/{name}", "wb") as file:
        file.write(content)


def remove(root: str, release: Release, name: str) -> None:
    """Removes a file from a release's folder in a store."""
    fs, base = fsspec.core.url_to_fs(root)
    fs.rm(f"{base}/{release.task}/{release.version}/{name}")


def put_release(root: str, fields: dict[str, Any], files: dict[str, bytes]) -> tuple[str, str]:
    """Writes a manifest of these fields, and files, into a store without any check: its task and version."""
    stored = orjson.dumps(fields)
    version = version_of(stored)
    fs, base = fsspec.core.url_to_fs(root)
    place = f"{base}/{fields['task']}/{version}"
    fs.makedirs(place, exist_ok=True)
    for name, content in {**files, MANIFEST: stored}.items():
        fs.pipe_file(f"{place}/{name}", content)
    return fields["task"], version


def refusal(kind: type[ReleaseError], work: Callable[[], object]) -> str:
    """The message, of one line, of the error of exactly this class that `work` raises."""
    with pytest.raises(ReleaseError) as refused:
        work()
    assert type(refused.value) is kind
    assert "\n" not in str(refused.value)
    return str(refused.value)


@contextmanager
def power_cut() -> Iterator[None]:
    """Nothing gets its final name."""

    def rename(self: Path, target: Path) -> Path:
        raise OSError("power cut")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "rename", rename)
        yield


class MisbehavingStore(MemoryFileSystem):  # type: ignore[misc]
    """The stores in memory under another protocol; subclasses misbehave in different ways."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace(f"{cls.protocol}://", "memory://")))
