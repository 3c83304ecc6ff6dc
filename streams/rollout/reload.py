"""Follows the announcements and changes the models of a worker's stages while they run."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from models.loading import Loaded
from models.releases.manifest import ReleaseError
from models.releases.store import bundled_version
from models.types import JUDGE
from streams import metrics
from streams.inference_threads import lower_priority
from streams.records import Announcement
from streams.rollout import announcements
from streams.rollout.announcements import Refusal, is_passing
from streams.rollout.handle import Handle, load_task
from streams.rollout.loading import kept_folder, kept_versions, load_release
from streams.rollout.trust import Trust
from streams.settings import Settings
from streams.stage import Stage

log = logging.getLogger(__name__)
#: Seconds until the topic is read again after its consumer failed.
RETRY_SECONDS = 2.0
#: Seconds until a release is loaded again after the store failed.
STORE_RETRY_SECONDS = 10.0
#: Each failure doubles them, up to these.
MAX_STORE_RETRY_SECONDS = 160.0


def load_at_start(
    task: str, announcement: Announcement | None, settings: Settings, generation: int = 0
) -> Handle:
    """The model that a worker starts with: the one that PV_RELEASES names, else the announced one, else the
    bundled one. `generation` is that of the announced release; all others have 0.

    An announced release that does not load is replaced (see `_fallbacks`), so that neither it nor the store
    can prevent a start; the Reloader tries it again. Raises ReleaseError when the release that PV_RELEASES
    names, or the bundled one, is refused.
    """
    if task in settings.releases or announcement is None:
        return load_task(task, settings)
    try:
        loaded = load_release(task, announcement.version, settings, keep=True)
        return Handle(replace(loaded, generation=generation))
    except Exception as error:
        refusal, refused = _refuse(task, announcement.version, error), error
    for name in _fallbacks(task, announcement, settings):
        try:
            handle = Handle(_load_exactly(task, name, settings))
            break
        except Exception as error:
            _refuse(task, Path(name).name, error)
    else:
        if bundled_version(task) is None:
            raise refused
        handle = load_task(task, settings)
    if handle.current.version == announcement.version:
        handle.renew(generation)
    else:
        handle.refused = refusal
        metrics.FALLBACK.labels(task).set(1)
        log.error("%s %s runs in place of %s", task, handle.current.version, announcement.version)
    return handle


def _load_exactly(task: str, name: str | Path, settings: Settings) -> Loaded:
    """Raises ReleaseError also when the folder of a kept release holds another one."""
    loaded = load_release(task, name, settings)
    if loaded.version != Path(name).name:
        raise ReleaseError(f"{Path(name).name}: this is {loaded.version}")
    return loaded


def _fallbacks(task: str, announcement: Announcement, settings: Settings) -> Iterator[str | Path]:
    """What a worker starts with in place of the announced release, in this order: this machine's copy of it,
    the release that was live before it, which the running workers have kept, and the releases that this
    machine ran last.
    """
    folder = kept_folder(task, settings)
    versions = kept_versions(task, settings)
    if announcement.version in versions:
        yield folder / announcement.version
    if announcement.previous is not None:
        yield announcement.previous
    yield from (folder / version for version in versions if version != announcement.version)


class Reloader:
    """Runs next to the stages of a worker; its errors do not reach them."""

    def __init__(
        self, stages: Sequence[Stage[Any, Any]], handles: Mapping[str, Handle], settings: Settings
    ) -> None:
        self._handles = handles
        self._settings = settings
        self._announcements = announcements.Announcements()
        self._tasks = [*(s.name for s in stages), *({JUDGE} & handles.keys())]
        """Those whose releases are followed: of the stages, and of the judge of one."""
        self._changed = {task: asyncio.Event() for task in self._tasks}
        """Set when the announcement of a task may have changed."""
        self._failures = dict.fromkeys(self._tasks, 0)
        """Failures of the store in turn."""
        self._retries: dict[str, asyncio.TimerHandle] = {}
        # One thread loads for all stages, so that few models are in memory in addition to the live ones.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reload", initializer=lower_priority)

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_announcements())
                for task in self._tasks:
                    group.create_task(self._update_live(task))
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _follow_announcements(self) -> None:
        while True:
            try:
                trust = Trust.of(self._settings)
                async with announcements.reader(self._settings) as consumer:
                    # Of the announcements already in the topic only the last one of each key is loaded.
                    self._announcements, _ = await announcements.read_to_end(consumer, trust)
                    for event in self._changed.values():
                        event.set()
                    async for message in consumer:
                        key = self._announcements.apply(message)
                        if key is None:
                            metrics.ANNOUNCEMENTS_REFUSED.inc()
                        elif key in self._changed:
                            self._changed[key].set()
            except Exception as error:
                log.warning("reading announcements failed, trying again: %s", type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)

    async def _update_live(self, task: str) -> None:
        """Loads the announced release; of several that were announced during a load only the last one."""
        handle = self._handles[task]
        changed = self._changed[task]
        while True:
            await changed.wait()
            changed.clear()
            announcement = self._announcements.get(task)
            if announcement is None:
                continue
            generation = self._announcements.generation(task)
            if _must_load(handle, announcement.version):
                await self._swap(handle, announcement.version, generation)
            elif announcement.version == handle.current.version and not handle.pinned:
                handle.renew(generation)

    async def _swap(self, handle: Handle, version: str, generation: int) -> None:
        started = time.perf_counter()
        loaded = await self._load(handle.task, version)
        if isinstance(loaded, Refusal):
            handle.refused = loaded
            if loaded.retryable:
                self._retry_later(handle.task)
            return
        previous = handle.current.version
        handle.swap(replace(loaded, generation=generation))
        _end_refusal(handle)
        self._failures[handle.task] = 0
        metrics.RELOADS.labels(handle.task, "loaded").inc()
        metrics.RELOAD_SECONDS.labels(handle.task).observe(time.perf_counter() - started)
        log.info("%s: %s is live and replaces %s", handle.task, loaded.version, previous)
        # The modules of a model refer to each other in cycles: without a collection the old weights would
        # stay in memory for a while.
        await asyncio.get_running_loop().run_in_executor(self._pool, gc.collect)

    def _retry_later(self, task: str) -> None:
        """One timer for each task, whatever is announced meanwhile."""
        if task in self._retries:
            self._retries[task].cancel()
        seconds = min(STORE_RETRY_SECONDS * 2 ** min(self._failures[task], 16), MAX_STORE_RETRY_SECONDS)
        self._failures[task] += 1
        self._retries[task] = asyncio.get_running_loop().call_later(seconds, self._changed[task].set)

    async def _load(self, task: str, version: str) -> Loaded | Refusal:
        work = partial(load_release, task, version, self._settings, keep=True)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except Exception as error:
            # After any kind of error the live model stays.
            return _refuse(task, version, error)


def _must_load(handle: Handle, version: str) -> bool:
    """Whether an announced version is to be loaded; the live one ends an earlier refusal."""
    refused = handle.refused
    if refused is not None and not refused.retryable and refused.version == version:
        # A release never changes, so it would be refused again.
        return False
    if version == handle.current.version:
        _end_refusal(handle)
        return False
    if handle.pinned:
        log.warning(
            "%s %s is announced, but PV_RELEASES sets %s", handle.task, version, handle.current.version
        )
        return False
    return True


def _end_refusal(handle: Handle) -> None:
    """The announced release is the live one."""
    handle.refused = None
    metrics.FALLBACK.labels(handle.task).set(0)


def _refuse(task: str, version: str, error: Exception) -> Refusal:
    """Counts and logs a refusal."""
    metrics.RELOADS.labels(task, "refused").inc()
    reason = str(error) if isinstance(error, ReleaseError) else type(error).__name__
    log.error("%s %s is refused: %s", task, version, reason)
    return Refusal(version, reason, is_passing(error))
