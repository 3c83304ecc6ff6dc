"""A store of releases that workers share: a directory or any fsspec URL, laid out as task/version/files.

Nothing is loaded in place: a release is copied to a private folder first and verified there, so that what
was checked is what is loaded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from models.releases import store
from models.releases.manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    Release,
    ReleaseError,
    StoreError,
    parse_manifest,
    version_of,
)
from models.releases.signature import SIGNATURE, SIGNATURE_BYTES, check
from models.types import TASKS

VERSION = re.compile("[0-9a-f]{12}")
BLOCK = 1 << 20


def fetch(root: str, task: str, version: str, into: Path, key: Ed25519PublicKey | None = None) -> Release:
    """Copies `root`/task/version into the empty folder `into` and opens the copy.

    Raises ReleaseError when the store does not answer, has no such release, or has one that is not exactly as
    declared. Nothing is read beyond its declared size, and only declared files are read.
    """
    _check_place(task, version)
    try:
        fs, base = _filesystem(root)
        return _fetch(fs, f"{base}/{task}/{version}", version, into, key)
    except ReleaseError:
        raise
    except FileNotFoundError:
        raise StoreError(f"{task} {version} is not in the store {_shown(root)}") from None
    except Exception as error:
        # Each file system has exceptions of its own.
        raise _failed(root, error) from error


def deliver(release: Release, root: str) -> None:
    """Copies a verified release into a store, the manifest last; raises ReleaseError."""
    try:
        fs, base = _filesystem(root)
        if isinstance(fs, LocalFileSystem):
            store.copy(release, Path(base))
            return
        place = f"{base}/{release.task}/{release.version}"
        signature = [SIGNATURE] if store.read_signature(release.path) is not None else []
        fs.makedirs(place, exist_ok=True)
        for name in [*release.manifest.files, *signature, MANIFEST]:
            fs.put_file(str(release.path / name), f"{place}/{name}")
    except ReleaseError:
        raise
    except Exception as error:
        raise _failed(root, error) from error


def versions(root: str, task: str) -> list[str]:
    """Versions of a task that a store has; empty where it has none; raises ReleaseError."""
    try:
        fs, base = _filesystem(root)
        names = [str(name).rstrip("/").rsplit("/", 1)[-1] for name in fs.ls(f"{base}/{task}", detail=False)]
    except FileNotFoundError:
        return []
    except Exception as error:
        raise _failed(root, error) from error
    return sorted(name for name in names if VERSION.fullmatch(name))


def read_manifest(root: str, task: str, version: str) -> bytes:
    """The stored manifest of a release, not verified beyond its version; raises ReleaseError."""
    _check_place(task, version)
    try:
        fs, base = _filesystem(root)
        place = f"{base}/{task}/{version}"
        if MANIFEST not in _listing(fs, place, version):
            raise StoreError(f"{version}: no {MANIFEST}")
        return _manifest(fs, place, version)
    except ReleaseError:
        raise
    except Exception as error:
        raise _failed(root, error) from error


def _manifest(fs: Any, place: str, version: str) -> bytes:
    stored = _read(fs, f"{place}/{MANIFEST}", MAX_MANIFEST_BYTES + 1)
    if len(stored) > MAX_MANIFEST_BYTES:
        raise ReleaseError(f"{version}: {MANIFEST} is larger than {MAX_MANIFEST_BYTES} bytes")
    if version_of(stored) != version:
        raise ReleaseError(f"{version}: the manifest there is that of {version_of(stored)}")
    return stored


def _fetch(fs: Any, place: str, version: str, into: Path, key: Ed25519PublicKey | None) -> Release:
    sizes = _listing(fs, place, version)
    if MANIFEST not in sizes:
        raise StoreError(f"{version}: no {MANIFEST}")
    stored = _manifest(fs, place, version)
    signature = None
    if SIGNATURE in sizes:
        signature = _read(fs, f"{place}/{SIGNATURE}", SIGNATURE_BYTES + 1)
        (into / SIGNATURE).write_bytes(signature)
    if key is not None:
        check(stored, signature, key, version)
    manifest = parse_manifest(stored, version)
    for extra in sorted(set(sizes) - set(manifest.files) - {MANIFEST, SIGNATURE}):
        raise ReleaseError(f"{version}: {extra} is not declared in the manifest")
    (into / MANIFEST).write_bytes(stored)
    for name, declared in manifest.files.items():
        store.check_name(name, version)
        if name not in sizes:
            raise ReleaseError(f"{version}: {name} is missing")
        if sizes[name] != declared.size:
            raise ReleaseError(f"{version}: {name} has {sizes[name]} bytes, {declared.size} are declared")
        _copy(fs, f"{place}/{name}", into / name, declared.size)
    return store.open_release(into, key)


def _listing(fs: Any, place: str, version: str) -> dict[str, int]:
    """Name to size of what lies in a release's folder; raises ReleaseError for anything but plain files."""
    sizes = {}
    for entry in fs.ls(place, detail=True):
        name = str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]
        if entry["name"].rstrip("/") == place.rstrip("/"):
            # Object stores may list the folder itself as an empty object.
            continue
        if entry["type"] != "file" or entry.get("islink"):
            raise ReleaseError(f"{version}: {name} is no regular file")
        sizes[name] = int(entry["size"] or 0)
    return sizes


def _read(fs: Any, path: str, limit: int) -> bytes:
    with fs.open(path, "rb") as file:
        return bytes(file.read(limit))


def _copy(fs: Any, source: str, target: Path, size: int) -> None:
    with fs.open(source, "rb") as file, target.open("wb") as out:
        left = size
        while left > 0 and (block := file.read(min(BLOCK, left))):
            out.write(block)
            left -= len(block)


def _check_place(task: str, version: str) -> None:
    if task not in TASKS or not VERSION.fullmatch(version):
        raise ReleaseError(f"{task!r} {version!r} is no task and version")


def _filesystem(root: str) -> tuple[Any, str]:
    fs, base = url_to_fs(str(Path(root).expanduser()) if "://" not in root else root)
    return fs, str(base).rstrip("/")


def _failed(root: str, error: Exception) -> StoreError:
    return StoreError(f"the store {_shown(root)} fails: {type(error).__name__}: {_shown(str(error))}")


def _shown(text: str) -> str:
    """Without the passwords of URLs that may stand in it."""
    return re.sub(r"://[^/\s]*@", "://", text)
