"""The one reference to a live model, and where releases are found."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models import release as releases
from models.loading import Loaded, load
from models.release import Release, ReleaseError
from models.remote import fetch
from models.signature import read_public_key
from models.store import open_release
from streams import metrics
from streams.settings import Settings

if TYPE_CHECKING:
    from streams.shadow import Shadow

BUNDLED = Path(releases.__file__).with_name("pretrained")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A release that was announced and not taken, and why."""

    version: str
    reason: str
    passing: bool = False
    """The store failed, not the release: it is tried again."""


class Handle:
    """Holds what is loaded for a task. The event loop swaps it; a batch takes it once, so no batch sees
    two.
    """

    def __init__(self, loaded: Loaded, *, pinned: bool = False) -> None:
        self.task = loaded.task
        self.current = loaded
        self.since = datetime.now(UTC)
        self.pinned = pinned
        """Named by the settings: announcements do not change it."""
        self.reloads = 0
        self.refused: Refusal | None = None
        self.shadow: Shadow | None = None
        metrics.MODEL.labels(self.task, loaded.version, loaded.kind).set(1)

    def swap(self, loaded: Loaded) -> None:
        """Makes another release the live one; the old one goes when the batch that has it ends."""
        metrics.MODEL.remove(self.task, self.current.version, self.current.kind)
        metrics.MODEL.labels(self.task, loaded.version, loaded.kind).set(1)
        self.current, self.since = loaded, datetime.now(UTC)
        self.reloads += 1

    def described(self) -> dict[str, Any]:
        """For /releases."""
        return {
            "version": self.current.version,
            "kind": self.current.kind,
            "since": self.since,
            "pinned": self.pinned,
            "reloads": self.reloads,
            "refused": self.refused,
            "shadow": self.shadow.described() if self.shadow is not None else None,
        }


def bundled(task: str) -> Path:
    """Directory of the release that ships for a task; raises ReleaseError when none or several are there."""
    found = [p for p in sorted((BUNDLED / task).glob("*")) if (p / releases.MANIFEST).is_file()]
    if len(found) != 1:
        raise ReleaseError(f"{len(found)} bundled releases for {task}, one is wanted")
    return found[0]


@contextmanager
def opened(task: str, name: str | Path | None, settings: Settings) -> Iterator[Release]:
    """A verified release, for the time of the block: the bundled one (None), a version of the store or the
    bundled one by its version (a string), or a directory (a path). Raises ReleaseError.

    The bundled releases come with the code and are trusted as it is; all others need a signature where
    PV_RELEASE_KEY is set.
    """
    if not isinstance(name, Path):
        own = bundled(task)
        if name in {None, own.name}:
            yield _of_task(open_release(own), task)
            return
    key = read_public_key(settings.release_key) if settings.release_key else None
    if isinstance(name, str):
        with tempfile.TemporaryDirectory(prefix=f"pv-{task}-") as folder:
            yield _of_task(fetch(settings.store, task, name, Path(folder), key), task)
        return
    yield _of_task(open_release(name, key), task)


def load_release(task: str, name: str | Path | None, settings: Settings) -> Loaded:
    """Opens, verifies and loads, and asks the canary; raises ReleaseError."""
    started = time.perf_counter()
    with opened(task, name, settings) as release:
        loaded = load(release, device=settings.device, dtype=settings.dtype)
    log.info("%s %s loaded in %.1f s", task, loaded.version, time.perf_counter() - started)
    return loaded


def load_task(task: str, settings: Settings) -> Handle:
    """What the settings name for a task, or the bundled release."""
    pinned = settings.releases.get(task)
    return Handle(load_release(task, pinned, settings), pinned=pinned is not None)


def _of_task(release: Release, task: str) -> Release:
    if release.task != task:
        raise ReleaseError(f"{release.path.name}: a release for {release.task}, not for {task}")
    return release
