"""The last good releases of each task on this machine, for a start while the store does not answer."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from models.releases import store
from models.releases.manifest import Release, ReleaseError
from models.releases.remote import VERSION
from streams.settings import Settings

log = logging.getLogger(__name__)
#: Releases of a task that are kept: the live one and the one before it.
KEPT = 2


def folder(task: str, settings: Settings) -> Path:
    """The folder of a task's kept releases; it need not exist."""
    return settings.state_folder / "releases" / task


def keep(release: Release, settings: Settings) -> None:
    """Keeps a copy of a release that was loaded, and removes the oldest beyond KEPT. A failure is logged: the
    release runs all the same.
    """
    own = folder(release.task, settings)
    try:
        own.mkdir(0o700, parents=True, exist_ok=True)
        _copy(release, own)
        os.utime(own / release.version)
        # The times of the others may be later, of a clock that was set back.
        others = [v for v in kept_versions(release.task, settings) if v != release.version]
        for version in others[KEPT - 1 :]:
            shutil.rmtree(own / version, ignore_errors=True)
    except (OSError, ReleaseError) as error:
        log.warning("%s %s is not kept in %s: %s", release.task, release.version, own, error)


def kept_versions(task: str, settings: Settings) -> list[str]:
    """The versions of a task that are kept, the one that was loaded last first."""
    places = [p for p in folder(task, settings).glob("*") if VERSION.fullmatch(p.name)]
    return [p.name for p in sorted(places, key=_loaded_at, reverse=True)]


def _copy(release: Release, own: Path) -> None:
    """Copies a release if it is not kept yet or its copy is damaged; raises OSError and ReleaseError."""
    try:
        store.copy(release, own.parent)
    except ReleaseError:
        shutil.rmtree(own / release.version)
        store.copy(release, own.parent)


def _loaded_at(path: Path) -> float:
    """0 for a folder that another worker has just removed."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
