"""Releases on a local disk: published atomically, opened only when every byte is as declared."""

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
from models.releases.signature import SIGNATURE, SIGNATURE_BYTES, check_signature

BUNDLED = Path(models.__file__).with_name("pretrained")
#: Characters of a file name; common file systems allow little more.
MAX_NAME = 200
#: Limit of a safetensors header, far above the names and shapes of the models here.
MAX_HEADER_BYTES = 1 << 20


def bundled(task: str) -> Path:
    """Directory of the release that comes with the code for a task; ReleaseError unless there is one."""
    releases = [p for p in sorted((BUNDLED / task).glob("*")) if (p / MANIFEST).is_file()]
    if len(releases) != 1:
        raise ReleaseError(f"{len(releases)} bundled releases for {task}, one is required")
    return releases[0]


def describe(directory: Path) -> dict[str, File]:
    """Digest and size, by name, of every file in a directory."""
    files = {}
    for path in sorted(directory.iterdir()):
        with path.open("rb") as file:
            files[path.name] = File(
                sha256=hashlib.file_digest(file, "sha256").hexdigest(), size=path.stat().st_size
            )
    return files


def publish(directory: Path, manifest: Manifest, root: Path) -> Release:
    """Copies the files of `directory` with the manifest to `root`/task/version, and returns that release.

    Raises ReleaseError when a file is not as the manifest declares it.
    """
    return _write(directory, manifest, manifest_bytes(manifest), None, root)


def copy(release: Release, root: Path) -> Release:
    """Copies a release with its signature to `root`/task/version, and returns the copy."""
    stored = (release.path / MANIFEST).read_bytes()
    return _write(release.path, release.manifest, stored, read_signature(release.path), root)


def sign(release: Release, key: Ed25519PrivateKey) -> None:
    """Writes a signature next to the manifest; an older one is replaced."""
    _write_signature(release.path, key.sign((release.path / MANIFEST).read_bytes()))


def _write(
    directory: Path, manifest: Manifest, stored: bytes, signature: bytes | None, root: Path
) -> Release:
    """Writes a temporary directory, syncs it and renames it, so that after a power cut either the whole
    release or nothing is at `root`/task/version. A directory that already exists is only verified, and gets
    the signature when it has another or none.
    """
    target = root / manifest.task / version_of(stored)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".publishing-", dir=target.parent))
        try:
            for name in sorted(manifest.files):
                shutil.copyfile(directory / name, temporary / name)
                _sync(temporary / name)
            (temporary / MANIFEST).write_bytes(stored)
            _sync(temporary / MANIFEST)
            if signature is not None:
                (temporary / SIGNATURE).write_bytes(signature)
                _sync(temporary / SIGNATURE)
            temporary.chmod(0o755)
            _sync(temporary)
            open_release(temporary)
            temporary.rename(target)
            _sync(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    elif signature is not None and read_signature(target) != signature:
        _write_signature(target, signature)
    return open_release(target)


def open_release(path: Path, key: Ed25519PublicKey | None = None) -> Release:
    """The release at `path`, with every file verified; with a key, a signature of its owner is required.

    Raises ReleaseError with one line that says what is wrong.
    """
    where = path.name
    if path.is_symlink() or not path.is_dir():
        raise ReleaseError(f"{path}: no release directory")
    stored = _read_manifest(path / MANIFEST, where)
    if key is not None:
        check_signature(stored, read_signature(path), key, where)
    manifest = parse_manifest(stored, where)
    present = {entry.name for entry in os.scandir(path)}
    check_declared(present, manifest, where)
    for name, declared in manifest.files.items():
        check_name(name, where)
        _verify(path, name, declared, where)
    return Release(path, manifest, version_of(stored))


def check_declared(names: set[str], manifest: Manifest, where: str) -> None:
    """Raises ReleaseError when a file in a release's folder is not declared in its manifest."""
    for extra in sorted(names - set(manifest.files) - {MANIFEST, SIGNATURE}):
        raise ReleaseError(f"{where}: {extra} is not declared in the manifest")


def check_name(name: str, where: str) -> None:
    """Raises ReleaseError unless a declared name is a plain file name with an allowed suffix."""
    pure = PurePosixPath(name)
    if (
        len(name) > MAX_NAME
        or pure.name != name
        or name in {"", ".", "..", MANIFEST}
        or "\\" in name
        or "\0" in name
    ):
        raise ReleaseError(f"{where}: {name!r} is not a plain file name")
    if pure.suffix not in ALLOWED_SUFFIXES:
        raise ReleaseError(f"{where}: {name}: files of type {pure.suffix or '(none)'} are not allowed")


def read_signature(path: Path) -> bytes | None:
    """The signature next to a manifest, or None where there is none; ReleaseError where it is malformed."""
    try:
        status = os.lstat(path / SIGNATURE)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size != SIGNATURE_BYTES:
        raise ReleaseError(f"{path.name}: {SIGNATURE} is not a signature")
    return (path / SIGNATURE).read_bytes()


def _write_signature(path: Path, signature: bytes) -> None:
    """Writes a temporary file outside the release's folder, where an undeclared file would make the release
    invalid, and renames it.
    """
    temporary = path.parent / f".{path.name}.sig"
    temporary.write_bytes(signature)
    _sync(temporary)
    temporary.rename(path / SIGNATURE)
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
        raise ReleaseError(f"{where}: {name} is not a regular file")
    if status.st_size != declared.size or status.st_size > MAX_FILE_BYTES:
        raise ReleaseError(f"{where}: {name} has {status.st_size} bytes, {declared.size} are declared")
    with (root / name).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != declared.sha256:
            raise ReleaseError(f"{where}: {name} does not have the declared sha256")
        if name.endswith(".safetensors"):
            _check_header(file, declared.size, f"{where}: {name}")


def _check_header(file: BinaryIO, size: int, where: str) -> None:
    """Raises ReleaseError unless a safetensors file begins with a JSON header of reasonable length."""
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise ReleaseError(f"{where} has a header of {length} bytes, or is not a safetensors file")
    try:
        header = orjson.loads(file.read(length))
    except orjson.JSONDecodeError:
        header = None
    if not isinstance(header, dict):
        raise ReleaseError(f"{where} is not a safetensors file")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
