"""Folders of this process for copies of releases; those that a killed process has left are removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "pv-release-"
#: Locked as long as the process lives, whatever ends it; a process id may belong to another process by now,
#: or to another container with the same folder.
LOCK = ".lock"


@contextmanager
def private_folder(name: str, parent: Path | None = None, prefix: str = PREFIX) -> Iterator[Path]:
    """An empty folder `name` that only this user can enter, for the duration of the block; it is inside of a
    new folder in `parent`, by default the system's folder for temporary files.
    """
    parent = parent or Path(tempfile.gettempdir())
    remove_abandoned(parent, prefix)
    outer, lock = _locked_folder(parent, prefix)
    try:
        (outer / name).mkdir(0o700)
        yield outer / name
    finally:
        _remove(outer)
        os.close(lock)


def remove_abandoned(parent: Path | None = None, prefix: str = PREFIX) -> None:
    """Removes the folders of this user in `parent` whose process has ended without removing them."""
    for folder in (parent or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        # Where the file system has no locks, or the folder has just been removed, there is nothing to do.
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    """Raises OSError when a process has the lock, or there is none."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Removes a folder, its lock last: by the lock another process finds what a kill leaves of it."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name != LOCK:
                shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def _locked_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder and the descriptor of its lock; raises OSError."""
    for _ in range(5):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        # Between the two calls another process may have taken the folder for an abandoned one.
        if os.fstat(lock).st_nlink:
            return folder, lock
        os.close(lock)
    raise OSError(f"no temporary folder can be made in {parent}")
