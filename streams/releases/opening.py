"""Finds a release by task and version, verifies it and loads it."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from models.releases.loading import Loaded, load
from models.releases.manifest import Release, ReleaseError
from models.releases.remote import fetch
from models.releases.signature import read_public_key
from models.releases.store import bundled, open_release
from streams.settings import Settings

log = logging.getLogger(__name__)


@contextmanager
def open_verified(task: str, name: str | Path | None, settings: Settings) -> Iterator[Release]:
    """A verified release for the duration of the block; raises ReleaseError.

    `name` is None for the bundled release, a string for a version (of the store or the bundled one), or a
    path for a directory. The bundled releases are trusted like the code they come with; all others need a
    signature if PV_RELEASE_KEY is set.
    """
    if not isinstance(name, Path):
        bundled_release = bundled(task)
        if name in {None, bundled_release.name}:
            yield _check_task(open_release(bundled_release), task)
            return
    key = read_public_key(settings.release_key) if settings.release_key else None
    if isinstance(name, str):
        with tempfile.TemporaryDirectory(prefix=f"pv-{task}-") as folder:
            yield _check_task(fetch(settings.store, task, name, Path(folder), key), task)
        return
    yield _check_task(open_release(name, key), task)


def load_release(task: str, name: str | Path | None, settings: Settings) -> Loaded:
    """Opens, verifies and loads a release and runs its canary check; raises ReleaseError."""
    started = time.perf_counter()
    with open_verified(task, name, settings) as release:
        loaded = load(release, device=settings.device, dtype=settings.dtype)
    log.info("%s %s loaded in %.1f s", task, loaded.version, time.perf_counter() - started)
    return loaded


def _check_task(release: Release, task: str) -> Release:
    if release.task != task:
        raise ReleaseError(f"{release.path.name}: a release for {release.task}, not for {task}")
    return release
