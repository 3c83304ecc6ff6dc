"""The state of a run after its last whole epoch, so that a killed run resumes.

It is read back without unpickling code, and only by a run with the same settings, which may name its data.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import random
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile, ZipFile

import torch

FILE = "checkpoint.pt"
LOCK = ".lock"
#: What reading a damaged file ends with, by where the damage is.
_DAMAGED = (
    RuntimeError, EOFError, UnpicklingError, ValueError, LookupError, TypeError, AttributeError, BadZipFile,
    struct.error, zlib.error,
)  # fmt: skip
#: The locked files of this process, which has them until it ends: closing one ends its lock.
_locked: dict[Path, int] = {}


class CheckpointError(Exception):
    """The run folder belongs to a run with other settings, to one that goes on, or to none, or cannot be read
    or written; the message is one line.
    """


def digest_of(data: Iterable[object]) -> str:
    """SHA-256 of plain values, to be one of the settings: a run does not resume over other data, and its
    release states what it was trained on.
    """
    digest = hashlib.sha256()
    for value in data:
        digest.update(f"{value!r}\n".encode())
    return digest.hexdigest()


class Checkpoint:
    """The checkpoint of one run. With `folder` None nothing is saved and nothing is loaded."""

    def __init__(self, folder: Path | None, settings: Mapping[str, Any]) -> None:
        """`settings`: the plain values that identify a run."""
        self._path = folder / FILE if folder else None
        self._settings = dict(settings)

    def load(self) -> dict[str, Any] | None:
        """The last saved state, None where there is none; sets torch's random generators to where they were.

        Raises CheckpointError, also while another process has the folder: of two runs there each would
        replace the state of the other.
        """
        if self._path is None:
            return None
        _lock(self._path.parent)
        if not self._path.exists():
            return None
        stored = _stored(self._path)
        if stored["settings"] != self._settings:
            raise CheckpointError(f"{self._path} is of a run with other settings")
        torch.set_rng_state(stored["torch"])
        here = torch.cuda.device_count() if torch.cuda.is_available() else 0
        # A run that began elsewhere continues, with other draws of its GPU.
        if stored["cuda"] and len(stored["cuda"]) == here:
            torch.cuda.set_rng_state_all(stored["cuda"])
        return dict(stored["state"])

    def save(self, state: Mapping[str, Any]) -> None:
        """Saves tensors and plain values. They are written to another file, synced and renamed, so that a
        power cut leaves the last state or this one. Raises CheckpointError where the disk is full.
        """
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        aside = self._path.with_suffix(".new")
        generators = {
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }
        try:
            with aside.open("wb") as file:
                torch.save({"settings": self._settings, "state": dict(state)} | generators, file)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, RuntimeError) as error:
            # A failed write is an error of torch, which has that of the system for its context.
            reason = error.__context__ if isinstance(error.__context__, OSError) else error
            aside.unlink(missing_ok=True)
            said = " ".join(str(reason).split())
            raise CheckpointError(f"{self._path} stays as it was, it cannot be written: {said}") from error
        aside.rename(self._path)


def _stored(path: Path) -> dict[str, Any]:
    try:
        # It has the checksums of its parts, which torch does not compare.
        with ZipFile(path) as parts:
            whole = parts.testzip() is None
        stored: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu") if whole else {}
        whole = stored.keys() >= {"settings", "state"}
    except OSError as error:
        # Where the damage is in the directory of the file, it is told to seek to nowhere.
        if error.errno != errno.EINVAL:
            raise
        whole = False
    except _DAMAGED:
        whole = False
    if not whole:
        raise CheckpointError(f"{path} is damaged: remove it to begin the run anew")
    return stored


def _lock(folder: Path) -> None:
    """Keeps other processes out of a folder until this one ends; where there are no locks it does nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = (folder / LOCK).resolve()
    if path in _locked:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise CheckpointError(
                f"{folder} is in use by another run: give each a --run of its own"
            ) from None
        return
    _locked[path] = descriptor


def random_state(rng: random.Random) -> list[Any]:
    """The state of a generator in plain values."""
    version, numbers, gauss = rng.getstate()
    return [version, list(numbers), gauss]


def set_random_state(rng: random.Random, state: list[Any]) -> None:
    """Puts `random_state` back."""
    version, numbers, gauss = state
    rng.setstate((version, tuple(numbers), gauss))
