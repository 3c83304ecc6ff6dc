"""A store of releases that workers share: a directory or an fsspec URL with files task/version/name.

No release is loaded from the store itself: it is copied to a private folder and verified there, so that the
verified bytes are the ones that are loaded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from models.redaction import redact
from models.releases import store
from models.releases.manifest import (
    DEFAULT_LIMITS,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    Limits,
    Release,
    ReleaseError,
    StoreError,
    parse_manifest,
    version_of,
)
from models.releases.signature import SIGNATURE, SIGNATURE_BYTES, check_signature
from models.types import RELEASED

VERSION = re.compile("[0-9a-f]{12}")


def fetch(  # noqa: PLR0913  what is wanted, from where, to where, and on what conditions
    root: str,
    task: str,
    version: str,
    into: Path,
    key: Ed25519PublicKey | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
) -> Release:
    """Copies `root`/task/version into the empty folder `into` and opens the copy.

    Only declared files are read, and none beyond its declared size. With a key, a signature of its owner is
    required. Raises StoreError when the store cannot be reached or does not have the release, and
    ReleaseError when the release is not exactly as declared.
    """
    _check_names(task, version)
    try:
        fs, base = _filesystem(root)
        return _fetch(fs, f"{base}/{task}/{version}", into, key, limits)
    except ReleaseError:
        raise
    except FileNotFoundError:
        raise StoreError(f"{task} {version} is not in the store {redact(root)}") from None
    except Exception as error:
        # Each file system raises exceptions of its own.
        raise _store_error(root, error) from error


def deliver(release: Release, root: str) -> None:
    """Copies a verified release with its signature into a store, the manifest last.

    Raises StoreError when the store fails, and ReleaseError when a directory already has a damaged copy of
    this release.
    """
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
        raise _store_error(root, error) from error


def versions(root: str, task: str) -> list[str]:
    """The versions of a task in a store, sorted; raises StoreError when the store fails."""
    try:
        fs, base = _filesystem(root)
        names = [str(name).rstrip("/").rsplit("/", 1)[-1] for name in fs.ls(f"{base}/{task}", detail=False)]
    except FileNotFoundError:
        return []
    except Exception as error:
        raise _store_error(root, error) from error
    return sorted(name for name in names if VERSION.fullmatch(name))


def read_manifest(root: str, task: str, version: str) -> bytes:
    """The stored manifest of a release, of which only the version is verified.

    Raises StoreError when the store fails or does not have it, ReleaseError when it is another version's.
    """
    _check_names(task, version)
    try:
        fs, base = _filesystem(root)
        place = f"{base}/{task}/{version}"
        if MANIFEST not in _listing(fs, place, version):
            raise StoreError(f"{version}: no {MANIFEST}")
        return _manifest(fs, place, version)
    except ReleaseError:
        raise
    except Exception as error:
        raise _store_error(root, error) from error


def _manifest(fs: Any, place: str, version: str) -> bytes:
    stored = _read(fs, f"{place}/{MANIFEST}", MAX_MANIFEST_BYTES + 1)
    if len(stored) > MAX_MANIFEST_BYTES:
        raise ReleaseError(f"{version}: {MANIFEST} is larger than {MAX_MANIFEST_BYTES} bytes")
    if version_of(stored) != version:
        raise ReleaseError(f"{version}: the manifest in this folder is that of {version_of(stored)}")
    return stored


def _fetch(fs: Any, place: str, into: Path, key: Ed25519PublicKey | None, limits: Limits) -> Release:
    version = place.rsplit("/", 1)[-1]
    sizes = _listing(fs, place, version)
    if MANIFEST not in sizes:
        raise StoreError(f"{version}: no {MANIFEST}")
    stored = _manifest(fs, place, version)
    signature = None
    if SIGNATURE in sizes:
        signature = _read(fs, f"{place}/{SIGNATURE}", SIGNATURE_BYTES + 1)
        (into / SIGNATURE).write_bytes(signature)
    if key is not None:
        check_signature(stored, signature, key, version)
    manifest = parse_manifest(stored, version)
    store.check_limits(manifest, limits, version)
    store.check_declared(set(sizes), manifest, version)
    (into / MANIFEST).write_bytes(stored)
    for name, declared in manifest.files.items():
        store.check_name(name, version)
        if name not in sizes:
            raise ReleaseError(f"{version}: {name} is missing")
        if sizes[name] != declared.size:
            raise ReleaseError(f"{version}: {name} has {sizes[name]} bytes, {declared.size} are declared")
        with fs.open(f"{place}/{name}", "rb") as file:
            store.copy_bytes(file, into / name, declared.size)
    return store.open_release(into, key)


def _listing(fs: Any, place: str, version: str) -> dict[str, int]:
    """Size by name of the files in a release's folder; raises ReleaseError for other things than files."""
    sizes = {}
    for entry in fs.ls(place, detail=True):
        name = str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]
        if entry["name"].rstrip("/") == place.rstrip("/"):
            # Object stores may list the folder itself as an empty object.
            continue
        if entry["type"] != "file" or entry.get("islink"):
            raise ReleaseError(f"{version}: {name} is not a regular file")
        sizes[name] = int(entry["size"] or 0)
    return sizes


def _read(fs: Any, path: str, limit: int) -> bytes:
    with fs.open(path, "rb") as file:
        return bytes(file.read(limit))


def _check_names(task: str, version: str) -> None:
    if task not in RELEASED or not VERSION.fullmatch(version):
        raise ReleaseError(f"{task!r} {version!r} is not a task and version")


def _filesystem(root: str) -> tuple[Any, str]:
    """The store as it is now: s3fs and others keep what they have listed as long as the process lives."""
    fs, base = url_to_fs(str(Path(root).expanduser()) if "://" not in root else root)
    fs.invalidate_cache()
    return fs, str(base).rstrip("/")


def _store_error(root: str, error: Exception) -> StoreError:
    return StoreError(redact(f"the store {root} fails: {type(error).__name__}: {error}"))
