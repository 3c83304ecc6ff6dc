"""The one reference to a live model; a batch takes it once."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from models import release as releases
from models.loading import Loaded, load
from models.release import ReleaseError
from models.store import open_release
from streams import metrics
from streams.settings import Settings

BUNDLED = Path(releases.__file__).with_name("pretrained")
log = logging.getLogger(__name__)


class Handle:
    """Holds what is loaded for a task."""

    def __init__(self, loaded: Loaded) -> None:
        self.current = loaded


def bundled(task: str) -> Path:
    """Directory of the release that ships for a task; raises ReleaseError when none or several are there."""
    found = [p for p in sorted((BUNDLED / task).glob("*")) if (p / releases.MANIFEST).is_file()]
    if len(found) != 1:
        raise ReleaseError(f"{len(found)} bundled releases for {task}, one is wanted")
    return found[0]


def load_task(task: str, settings: Settings) -> Handle:
    """Opens, verifies and loads the release that the settings name for a task, or the bundled one."""
    started = time.perf_counter()
    release = open_release(settings.releases.get(task) or bundled(task))
    if release.task != task:
        raise ReleaseError(f"{release.path}: a release for {release.task}, not for {task}")
    loaded = load(release, device=settings.device, dtype=settings.dtype)
    metrics.MODEL.labels(task, release.version, release.manifest.kind).set(1)
    log.info("%s %s loaded in %.1f s", task, release.version, time.perf_counter() - started)
    return Handle(loaded)
