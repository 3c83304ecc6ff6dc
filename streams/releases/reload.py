"""Follows the announcements and gives a worker's stages new models while they run."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from models.releases.loading import Loaded
from models.releases.manifest import ReleaseError, StoreError
from streams import metrics
from streams.inference import be_polite
from streams.records import SHADOW, Announcement
from streams.releases import announcements
from streams.releases.announcements import Refusal
from streams.releases.handle import Handle, load_task
from streams.releases.opening import load_release
from streams.releases.shadow import Shadow
from streams.settings import Settings
from streams.stage import Stage

log = logging.getLogger(__name__)
#: Between attempts to follow the topic again after its reader failed.
RETRY_SECONDS = 2.0
#: Until a store that failed is asked again.
STORE_SECONDS = 10.0


def first_load(task: str, announcement: Announcement | None, settings: Settings) -> Handle:
    """The model that a worker starts with: what the settings name, else what is announced, else the bundled
    release.

    An announced release that is refused is replaced by the one that was live before it, which the workers
    that were running then have kept. Raises ReleaseError where that is refused too.
    """
    if task in settings.releases or announcement is None:
        return load_task(task, settings)
    try:
        return Handle(load_release(task, announcement.version, settings))
    except ReleaseError as error:
        _refused(task, announcement.version, error)
        if announcement.previous is None:
            raise
        handle = Handle(load_release(task, announcement.previous, settings))
        handle.refused = Refusal(announcement.version, str(error), isinstance(error, StoreError))
        return handle


class Reloader:
    """Runs beside the stages of a worker; nothing that fails here reaches them."""

    def __init__(
        self, stages: Sequence[Stage[Any, Any]], handles: Mapping[str, Handle], settings: Settings
    ) -> None:
        self._stages = {s.name: s for s in stages}
        self._handles = handles
        self._settings = settings
        self._held: dict[str, Announcement] = {}
        self._changed: dict[str, asyncio.Event] = {
            key: asyncio.Event() for task in self._stages for key in (task, task + SHADOW)
        }
        # One thread loads for all stages: two models more than needed are in memory at most.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reload", initializer=be_polite)

    async def run(self) -> None:
        """Until cancelled; then the shadows are stopped too."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                for task in self._stages:
                    group.create_task(self._keep_live(task))
                    group.create_task(self._keep_shadow(task))
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for handle in self._handles.values():
                if handle.shadow is not None:
                    await handle.shadow.stop()

    async def _follow(self) -> None:
        while True:
            try:
                async with announcements.reader(self._settings) as consumer:
                    # What was announced under a key before its last announcement is not loaded.
                    self._held, _ = await announcements.read_present(consumer)
                    for event in self._changed.values():
                        event.set()
                    async for message in consumer:
                        key = announcements.apply(self._held, message)
                        if key in self._changed:
                            self._changed[key].set()
            except Exception as error:
                log.warning("reading announcements failed, trying again: %s", type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)

    async def _keep_live(self, task: str) -> None:
        """Loads what is announced; of several that came meanwhile only the last."""
        handle = self._handles[task]
        while True:
            await self._changed[task].wait()
            self._changed[task].clear()
            wanted = self._held.get(task)
            known = handle.refused is not None and not handle.refused.passing
            if known and wanted is not None and handle.refused.version == wanted.version:  # type: ignore[union-attr]
                # Refused when the worker started; a release does not change.
                continue
            if wanted is None or wanted.version == handle.current.version:
                handle.refused = None if wanted is not None else handle.refused
                continue
            if handle.pinned:
                log.warning(
                    "%s %s announced, but the settings pin %s", task, wanted.version, handle.current.version
                )
                continue
            started = time.perf_counter()
            loaded = await self._load(task, wanted.version)
            if isinstance(loaded, Refusal):
                handle.refused = loaded
                if loaded.passing:
                    asyncio.get_running_loop().call_later(STORE_SECONDS, self._changed[task].set)
                continue
            before = handle.current.version
            handle.swap(loaded)
            handle.refused = None
            metrics.RELOADS.labels(task, "loaded").inc()
            metrics.RELOAD_SECONDS.labels(task).observe(time.perf_counter() - started)
            log.info("%s: %s is live, %s is not any more", task, loaded.version, before)
            del loaded
            # Modules refer to each other in circles: without this the old weights stay for a while.
            await asyncio.get_running_loop().run_in_executor(self._pool, gc.collect)

    async def _keep_shadow(self, task: str) -> None:
        handle = self._handles[task]
        while True:
            await self._changed[task + SHADOW].wait()
            self._changed[task + SHADOW].clear()
            wanted = self._held.get(task + SHADOW)
            now = handle.shadow
            if (
                wanted is not None
                and now is not None
                and (now.version, now.share) == (wanted.version, wanted.share)
            ):
                continue
            handle.shadow = None
            if now is not None:
                await now.stop()
                log.info("%s: shadow %s ends", task, now.version)
            if wanted is None:
                continue
            handle.shadow = Shadow(self._stages[task], wanted.version, wanted.share, self._settings)
            handle.shadow.start()
            log.info("%s: %s runs as a shadow on %.0f %%", task, wanted.version, 100 * wanted.share)

    async def _load(self, task: str, version: str) -> Loaded | Refusal:
        work = partial(load_release, task, version, self._settings)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except Exception as error:
            # Of whatever kind: the live model stays.
            return _refused(task, version, error)


def _refused(task: str, version: str, error: Exception) -> Refusal:
    metrics.RELOADS.labels(task, "refused").inc()
    reason = str(error) if isinstance(error, ReleaseError) else type(error).__name__
    log.error("%s %s is refused: %s", task, version, reason)
    return Refusal(version, reason, isinstance(error, StoreError))
