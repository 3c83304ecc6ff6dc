"""Releases on disk: publish without ever showing a half-written one, open only what is exactly as
declared.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path, PurePosixPath

from models.release import (
    ALLOWED_SUFFIXES,
    MANIFEST,
    MAX_FILE_BYTES,
    MAX_MANIFEST_BYTES,
    File,
    Manifest,
    Release,
    ReleaseError,
    manifest_bytes,
    parse_manifest,
    version_of,
)

#: Longer names cannot be made on common file systems.
MAX_NAME = 200


def describe(directory: Path) -> dict[str, File]:
    """Digest and size of every file of a directory that is to become a release."""
    files = {}
    for path in sorted(directory.iterdir()):
        with path.open("rb") as file:
            files[path.name] = File(
                sha256=hashlib.file_digest(file, "sha256").hexdigest(), size=path.stat().st_size
            )
    return files


def publish(directory: Path, manifest: Manifest, root: Path) -> Release:
    """Copies `directory` with its manifest to `root`/task/version and returns the verified result.

    Everything is written aside and synced; the manifest is written last, and the directory takes its name
    last, so that a power cut leaves either the whole release or none. Publishing the same release again
    changes nothing.
    """
    stored = manifest_bytes(manifest)
    target = root / manifest.task / version_of(stored)
    if target.exists():
        return open_release(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".publishing-", dir=target.parent))
    try:
        for name in sorted(manifest.files):
            shutil.copyfile(directory / name, aside / name)
            _sync(aside / name)
        (aside / MANIFEST).write_bytes(stored)
        _sync(aside / MANIFEST)
        aside.chmod(0o755)
        _sync(aside)
        open_release(aside)
        aside.rename(target)
        _sync(target.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return open_release(target)


def open_release(path: Path) -> Release:
    """The release at `path` after checking its every byte; raises ReleaseError with one line that says what
    is wrong.
    """
    where = path.name
    if path.is_symlink() or not path.is_dir():
        raise ReleaseError(f"{path}: no release directory")
    stored = _read_manifest(path / MANIFEST, where)
    manifest = parse_manifest(stored, where)
    present = {entry.name for entry in os.scandir(path)}
    for extra in sorted(present - set(manifest.files) - {MANIFEST}):
        raise ReleaseError(f"{where}: {extra} is not declared in the manifest")
    for name, declared in manifest.files.items():
        _verify(path, name, declared, where)
    return Release(path, manifest, version_of(stored))


def _read_manifest(path: Path, where: str) -> bytes:
    if path.is_symlink() or not path.is_file():
        raise ReleaseError(f"{where}: no {MANIFEST}")
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise ReleaseError(f"{where}: {MANIFEST} is larger than {MAX_MANIFEST_BYTES} bytes")
    return path.read_bytes()


def _verify(root: Path, name: str, declared: File, where: str) -> None:
    pure = PurePosixPath(name)
    if (
        len(name) > MAX_NAME
        or pure.name != name
        or name in {"", ".", "..", MANIFEST}
        or "\\" in name
        or "\0" in name
    ):
        raise ReleaseError(f"{where}: {name!r} is no plain file name")
    if pure.suffix not in ALLOWED_SUFFIXES:
        raise ReleaseError(f"{where}: {name}: files of type {pure.suffix or '(none)'} are not allowed")
    try:
        status = os.lstat(root / name)
    except FileNotFoundError:
        raise ReleaseError(f"{where}: {name} is missing") from None
    if not stat.S_ISREG(status.st_mode):
        raise ReleaseError(f"{where}: {name} is no regular file")
    if status.st_size != declared.size or status.st_size > MAX_FILE_BYTES:
        raise ReleaseError(f"{where}: {name} has {status.st_size} bytes, {declared.size} are declared")
    with (root / name).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != declared.sha256:
            raise ReleaseError(f"{where}: {name} does not have the declared sha256")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
