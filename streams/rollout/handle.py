"""The reference to the live model of a task, with its reload state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from models.loading import Loaded
from streams import metrics
from streams.rollout.announcements import Refusal
from streams.rollout.loading import load_release
from streams.settings import Settings


class Handle:
    """The live model of a task. The event loop swaps it; a batch reads it once, so a batch has one model."""

    def __init__(self, loaded: Loaded, *, pinned: bool = False) -> None:
        self.task = loaded.task
        self.current = loaded
        self.since = datetime.now(UTC)
        self.pinned = pinned
        """Set by PV_RELEASES: announcements do not change it."""
        self.reloads = 0
        self.refused: Refusal | None = None
        self.judge: Handle | None = None
        """That of the tagger's judge; its model is None where there is no release of one."""
        metrics.MODEL.labels(self.task, loaded.version, loaded.kind).set(1)

    def snapshot(self) -> Loaded:
        """The live release, with its judge's: a batch keeps both, whichever is swapped meanwhile."""
        judge = self.judge.current if self.judge is not None else None
        return self.current if judge is None or judge.model is None else replace(self.current, judge=judge)

    def swap(self, loaded: Loaded) -> None:
        """Makes another release the live one; a running batch keeps the old one until it ends."""
        metrics.MODEL.remove(self.task, self.current.version, self.current.kind)
        metrics.MODEL.labels(self.task, loaded.version, loaded.kind).set(1)
        self.current, self.since = loaded, datetime.now(UTC)
        self.reloads += 1

    def renew(self, generation: int) -> None:
        """The live release was announced again; a running batch keeps its generation."""
        self.current = replace(self.current, generation=generation)

    def status(self) -> dict[str, Any]:
        """For /releases."""
        return {
            "version": self.current.version,
            "generation": self.current.generation,
            "kind": self.current.kind,
            "since": self.since,
            "pinned": self.pinned,
            "reloads": self.reloads,
            "refused": self.refused.status() if self.refused is not None else None,
        }


def load_task(task: str, settings: Settings) -> Handle:
    """Loads the release that PV_RELEASES names for a task, or the bundled one; raises ReleaseError."""
    pinned = settings.releases.get(task)
    return Handle(load_release(task, pinned, settings), pinned=pinned is not None)
