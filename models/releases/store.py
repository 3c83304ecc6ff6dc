"""Releases on a local disk: built atomically, opened only when every byte is as declared."""

from __future__ import annotations

import hashlib
import os
import stat
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

import models
from models.releases.manifest import (
    ALLOWED_SUFFIXES,
    DEFAULT_LIMITS,
    MANIFEST,
    MAX_FILE_BYTES,
    MAX_MANIFEST_BYTES,
    File,
    Limits,
    Manifest,
    Release,
    ReleaseError,
    manifest_bytes,
    parse_manifest,
    version_of,
)
from models.releases.private import private_folder
from models.releases.signature import SIGNATURE, SIGNATURE_BYTES, check_signature
from models.releases.tensor_header import check_header
from models.types import JUDGE

BUNDLED = Path(models.__file__).with_name("pretrained")
#: Characters of a file name; common file systems allow little more.
MAX_NAME = 200
BLOCK = 1 << 20


def bundled(task: str) -> Path:
    """Directory of the release that comes with the code for a task; ReleaseError unless there is one."""
    releases = [p for p in sorted((BUNDLED / task).glob("*")) if (p / MANIFEST).is_file()]
    if len(releases) != 1:
        raise ReleaseError(f"{len(releases)} bundled releases for {task}, one is required")
    return releases[0]


def bundled_version(task: str) -> str | None:
    """The version of the bundled release; None for a judge where none is bundled. Raises ReleaseError."""
    if task == JUDGE and not (BUNDLED / task).is_dir():
        return None
    return bundled(task).name


def describe(directory: Path) -> dict[str, File]:
    """Digest and size, by name, of every file in a directory."""
    files = {}
    for path in sorted(directory.iterdir()):
        with path.open("rb") as file:
            files[path.name] = File(
                sha256=hashlib.file_digest(file, "sha256").hexdigest(), size=path.stat().st_size
            )
    return files


def build(directory: Path, manifest: Manifest, root: Path) -> Release:
    """Copies the files of `directory` with the manifest to `root`/task/version, and returns that release.

    Raises ReleaseError when a file is not as the manifest declares it.
    """
    return _write(directory, manifest, manifest_bytes(manifest), None, root)


def copy(release: Release, root: Path) -> Release:
    """Copies a release with its signature to `root`/task/version, and returns the copy."""
    stored = (release.path / MANIFEST).read_bytes()
    return _write(release.path, release.manifest, stored, read_signature(release.path), root)


def sign(release: Release, key: Ed25519PrivateKey) -> None:
    """Writes a signature next to the manifest; an older one is replaced. Raises ReleaseError when the
    manifest is no longer the verified one.
    """
    stored = _read_manifest(release.path / MANIFEST, release.version)
    if version_of(stored) != release.version:
        raise ReleaseError(f"{release.version}: {MANIFEST} has changed since it was verified")
    _write_signature(release.path, key.sign(stored))


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
        with private_folder(target.name, target.parent, ".building-") as temporary:
            for name in sorted(manifest.files):
                _copy_declared(directory, name, manifest.files[name], temporary)
                sync(temporary / name)
            (temporary / MANIFEST).write_bytes(stored)
            sync(temporary / MANIFEST)
            if signature is not None:
                (temporary / SIGNATURE).write_bytes(signature)
                sync(temporary / SIGNATURE)
            temporary.chmod(0o755)
            sync(temporary)
            open_release(temporary)
            try:
                temporary.rename(target)
            except OSError:  # another process has written the same release meanwhile
                if not target.is_dir():
                    raise
            sync(target.parent)
    if signature is not None and read_signature(target) != signature:
        _write_signature(target, signature)
    return open_release(target)


def open_copy(
    source: Path, into: Path, key: Ed25519PublicKey | None = None, limits: Limits = DEFAULT_LIMITS
) -> Release:
    """Copies the release in the directory `source` into the empty folder `into` and opens the copy, so that a
    file that is exchanged after its verification is not loaded. Raises ReleaseError.
    """
    where = into.name
    if source.is_symlink() or not source.is_dir():
        raise ReleaseError(f"{source}: no release directory")
    stored = _read_manifest(source / MANIFEST, where)
    signature = read_signature(source)
    if key is not None:
        check_signature(stored, signature, key, where)
    manifest = parse_manifest(stored, where)
    check_limits(manifest, limits, where)
    with os.scandir(source) as entries:
        # The declared files, manifest and signature; one more is enough to refuse.
        present = {entry.name for entry in islice(entries, limits.files + 3)}
    check_declared(present, manifest, where)
    for name, declared in manifest.files.items():
        check_name(name, where)
        _copy_declared(source, name, declared, into)
    if signature is not None:
        (into / SIGNATURE).write_bytes(signature)
    (into / MANIFEST).write_bytes(stored)
    return open_release(into, key)


def open_release(path: Path, key: Ed25519PublicKey | None = None) -> Release:
    """The release at `path`, with every file verified; with a key, a signature of its owner is required.

    What can still be changed by others must not be loaded from there: see `open_copy`. Raises ReleaseError
    with one line that says what is wrong.
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


def check_limits(manifest: Manifest, limits: Limits, where: str) -> None:
    """Raises ReleaseError when the declared files are too many, or too large together; no more than what is
    declared is ever copied.
    """
    if len(manifest.files) > limits.files:
        raise ReleaseError(f"{where}: {len(manifest.files)} files, at most {limits.files} are allowed")
    total = sum(file.size for file in manifest.files.values())
    if total > limits.bytes:
        raise ReleaseError(f"{where}: {total} bytes, at most {limits.bytes} are allowed")


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
    sync(temporary)
    temporary.rename(path / SIGNATURE)
    sync(path)


def _read_manifest(path: Path, where: str) -> bytes:
    if path.is_symlink() or not path.is_file():
        raise ReleaseError(f"{where}: no {MANIFEST}")
    with _open_regular(path, where) as file:
        stored = file.read(MAX_MANIFEST_BYTES + 1)
    if len(stored) > MAX_MANIFEST_BYTES:
        raise ReleaseError(f"{where}: {MANIFEST} is larger than {MAX_MANIFEST_BYTES} bytes")
    return stored


def _open_regular(path: Path, where: str) -> BinaryIO:
    """Opens a file without following a link or waiting for the other end of a pipe; raises ReleaseError."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    except FileNotFoundError:
        raise ReleaseError(f"{where}: {path.name} is missing") from None
    except OSError:
        raise ReleaseError(f"{where}: {path.name} is not a regular file") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ReleaseError(f"{where}: {path.name} is not a regular file")
    return file


def _copy_declared(source: Path, name: str, declared: File, into: Path) -> None:
    """Copies a file of exactly the declared size; raises ReleaseError."""
    with _open_regular(source / name, into.name) as file:
        size = os.fstat(file.fileno()).st_size
        if size != declared.size:
            raise ReleaseError(f"{into.name}: {name} has {size} bytes, {declared.size} are declared")
        copy_bytes(file, into / name, declared.size)


def copy_bytes(file: BinaryIO, target: Path, size: int) -> None:
    """Copies at most `size` bytes to a new file."""
    with target.open("xb") as out:
        left = size
        while left > 0 and (block := file.read(min(BLOCK, left))):
            out.write(block)
            left -= len(block)


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
            check_header(file, declared.size, f"{where}: {name}")


def sync(path: Path) -> None:
    """Waits until a file or the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
