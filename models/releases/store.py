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
from typing import BinaryIO

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

import models
from models.releases.manifest import (
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
from models.releases.signature import SIGNATURE, SIGNATURE_BYTES, check

BUNDLED = Path(models.__file__).with_name("pretrained")
#: Longer names cannot be made on common file systems.
MAX_NAME = 200
#: Far above the names and shapes of any model of ours.
MAX_HEADER_BYTES = 1 << 20


def bundled(task: str) -> Path:
    """Directory of the release that ships for a task; raises ReleaseError when none or several are there."""
    found = [p for p in sorted((BUNDLED / task).glob("*")) if (p / MANIFEST).is_file()]
    if len(found) != 1:
        raise ReleaseError(f"{len(found)} bundled releases for {task}, one is wanted")
    return found[0]


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
    """Copies `directory` with its manifest to `root`/task/version and returns the verified result."""
    return _place(directory, manifest, manifest_bytes(manifest), None, root)


def copy(release: Release, root: Path) -> Release:
    """Copies a release, byte by byte and with its signature, to `root`/task/version."""
    stored = (release.path / MANIFEST).read_bytes()
    return _place(release.path, release.manifest, stored, read_signature(release.path), root)


def sign(release: Release, key: Ed25519PrivateKey) -> None:
    """Puts a signature beside the manifest, in place of an older one."""
    _write_signature(release.path, key.sign((release.path / MANIFEST).read_bytes()))


def _place(
    directory: Path, manifest: Manifest, stored: bytes, signature: bytes | None, root: Path
) -> Release:
    """Everything is written aside and synced, and the directory takes its name last: a power cut leaves
    either the whole release or none. What is already there is opened, not changed, but for a signature that
    it lacks.
    """
    target = root / manifest.task / version_of(stored)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".publishing-", dir=target.parent))
        try:
            for name in sorted(manifest.files):
                shutil.copyfile(directory / name, aside / name)
                _sync(aside / name)
            (aside / MANIFEST).write_bytes(stored)
            _sync(aside / MANIFEST)
            if signature is not None:
                (aside / SIGNATURE).write_bytes(signature)
                _sync(aside / SIGNATURE)
            aside.chmod(0o755)
            _sync(aside)
            open_release(aside)
            aside.rename(target)
            _sync(target.parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    elif signature is not None and read_signature(target) != signature:
        _write_signature(target, signature)
    return open_release(target)


def open_release(path: Path, key: Ed25519PublicKey | None = None) -> Release:
    """The release at `path` after checking its every byte; raises ReleaseError with one line that says what
    is wrong. With a key, a signature of its owner is required.
    """
    where = path.name
    if path.is_symlink() or not path.is_dir():
        raise ReleaseError(f"{path}: no release directory")
    stored = _read_manifest(path / MANIFEST, where)
    if key is not None:
        check(stored, read_signature(path), key, where)
    manifest = parse_manifest(stored, where)
    present = {entry.name for entry in os.scandir(path)}
    for extra in sorted(present - set(manifest.files) - {MANIFEST, SIGNATURE}):
        raise ReleaseError(f"{where}: {extra} is not declared in the manifest")
    for name, declared in manifest.files.items():
        check_name(name, where)
        _verify(path, name, declared, where)
    return Release(path, manifest, version_of(stored))


def check_name(name: str, where: str) -> None:
    """Raises ReleaseError unless a declared name is a plain file name of an allowed type."""
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


def read_signature(path: Path) -> bytes | None:
    """The signature beside a manifest; None where there is none, or where it is no file of the right size."""
    try:
        status = os.lstat(path / SIGNATURE)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size != SIGNATURE_BYTES:
        raise ReleaseError(f"{path.name}: {SIGNATURE} is no signature")
    return (path / SIGNATURE).read_bytes()


def _write_signature(path: Path, signature: bytes) -> None:
    """Beside the directory first: a stray file inside it would make it refused."""
    aside = path.parent / f".{path.name}.sig"
    aside.write_bytes(signature)
    _sync(aside)
    aside.rename(path / SIGNATURE)
    _sync(path)


def _read_manifest(path: Path, where: str) -> bytes:
    if path.is_symlink() or not path.is_file():
        raise ReleaseError(f"{where}: no {MANIFEST}")
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise ReleaseError(f"{where}: {MANIFEST} is larger than {MAX_MANIFEST_BYTES} bytes")
    return path.read_bytes()


def _verify(root: Path, name: str, declared: File, where: str) -> None:
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
        if name.endswith(".safetensors"):
            _check_header(file, declared.size, f"{where}: {name}")


def _check_header(file: BinaryIO, size: int, where: str) -> None:
    """A safetensors file begins with the length of a JSON header; nobody shall be made to read a huge one."""
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise ReleaseError(f"{where} has a header of {length} bytes, or is no safetensors file")
    try:
        header = orjson.loads(file.read(length))
    except orjson.JSONDecodeError:
        header = None
    if not isinstance(header, dict):
        raise ReleaseError(f"{where} is no safetensors file")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
