"""A store of releases for summaries, handles and announcements, for the tests of loading and reloading."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from models.loading import Loaded
from streams import metrics
from streams.agents.pipeline import stage_named
from streams.codec import encode
from streams.records import Announcement, Inbound
from streams.rollout.handle import Handle
from streams.rollout.loading import load_release
from streams.rollout.reload import Reloader
from streams.settings import Settings

WHEN = datetime(2026, 3, 4, 9, 15, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Store:
    """A store with releases for summaries: three that load, and one that fails its canary check."""

    root: Path
    sound: tuple[str, str, str]
    failing: str

    @property
    def settings(self) -> Settings:
        return Settings(store=str(self.root), dtype="float32")


class HeldLoader:
    """A `load_release` that records the requested versions and waits until the test lets it load."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.may_load = threading.Event()

    def __call__(
        self, task: str, name: str | Path | None, settings: Settings, *, keep: bool = False
    ) -> Loaded:
        self.requested.append(str(name))
        assert self.may_load.wait(60)
        return load_release(task, name, settings)


def announcement(version: str, previous: str | None = None, task: Any = "summarization") -> Announcement:
    return Announcement(task=task, version=version, reason="publish", announced_at=WHEN, previous=previous)


def sent(
    key: bytes | None, value: bytes | None, offset: int = 7, headers: Sequence[tuple[str, bytes]] = ()
) -> Inbound:
    """A message of the topic of announcements."""
    return Inbound("releases", 0, offset, key, value, 0.0, tuple(headers))


def new_handle(store: Store, version: str | None = None, *, pinned: bool = False) -> Handle:
    """A new handle of a release, None for the bundled one; each release is loaded once for all tests."""
    return Handle(_loaded(store, version), pinned=pinned)


@cache
def _loaded(store: Store, version: str | None) -> Loaded:
    return load_release("summarization", version, store.settings)


def reloads(outcome: str) -> float:
    """The counter of reloads with this outcome."""
    labels = {"task": "summarization", "outcome": outcome}
    return metrics.REGISTRY.get_sample_value("pv_reload_total", labels) or 0.0


def live_series() -> list[tuple[str, float]]:
    """Release and value of every series of the gauge of live releases."""
    (gauge,) = metrics.MODEL.collect()
    return [(s.labels["release"], s.value) for s in gauge.samples if s.labels["task"] == "summarization"]


def fallback() -> float | None:
    """The gauge of releases that run in place of the announced one."""
    return metrics.REGISTRY.get_sample_value("pv_release_fallback", {"task": "summarization"})


@asynccontextmanager
async def reloading(
    handle: Handle, settings: Settings
) -> AsyncIterator[tuple[Reloader, Callable[[str], None]]]:
    """A reloader for one task without a broker, and a function that announces a version to it."""
    task = handle.task
    reloader = Reloader([stage_named(task)], {task: handle}, settings)
    offsets = itertools.count()

    def announce(version: str) -> None:
        value = encode(announcement(version, task=task))
        reloader._announcements.apply(sent(task.encode(), value, next(offsets)))
        reloader._changed[task].set()

    updating = asyncio.create_task(reloader._update_live(task))
    try:
        yield reloader, announce
        assert not updating.done(), "it must run until it is cancelled"
    finally:
        updating.cancel()
        await asyncio.gather(updating, return_exceptions=True)
        reloader._pool.shutdown(wait=True)
