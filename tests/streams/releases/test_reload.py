"""The change of the live release while a worker runs."""

from __future__ import annotations

import asyncio
import gc
import itertools
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from models.releases.loading import Loaded
from models.releases.manifest import Release
from models.releases.remote import deliver
from models.releases.store import bundled, open_release
from streams.agents.pipeline import stage_named
from streams.codec import encode
from streams.releases import reload
from streams.releases.announcements import Refusal
from streams.releases.handle import Handle
from streams.releases.opening import load_release
from streams.releases.reload import Reloader, load_at_start
from streams.settings import Settings
from tests.streams.polling import until
from tests.streams.releases.reloading import (
    HeldLoader,
    Store,
    announcement,
    fallback,
    live_series,
    new_handle,
    reloads,
)
from tests.variants import variant

pytestmark = pytest.mark.usefixtures("empty_gauge")


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
        reloader._announcements.apply(SimpleNamespace(key=task.encode(), value=value, offset=next(offsets)))
        reloader._changed[task].set()

    updating = asyncio.create_task(reloader._update_live(task))
    try:
        yield reloader, announce
        assert not updating.done(), "it must run until it is cancelled"
    finally:
        updating.cancel()
        await asyncio.gather(updating, return_exceptions=True)
        reloader._pool.shutdown(wait=True)


async def test_an_announced_release_becomes_the_live_one(store: Store) -> None:
    handle = new_handle(store)
    since = handle.since
    before = reloads("loaded"), reloads("refused")
    async with reloading(handle, store.settings) as (_, announce):
        for n, version in enumerate(store.sound[:2], 1):
            announce(version)
            await until(lambda n=n: handle.reloads == n)  # type: ignore[misc]
            assert handle.current.version == version
            assert live_series() == [(version, 1.0)]
    assert handle.since > since
    assert handle.refused is None
    assert (reloads("loaded"), reloads("refused")) == (before[0] + 2, before[1])
    assert handle.current.passes_canary()


async def test_a_refused_release_changes_nothing(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    handle = new_handle(store, store.sound[0])
    current, since = handle.current, handle.since
    before = reloads("loaded"), reloads("refused")
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.failing)
        await until(lambda: handle.refused is not None)
        assert handle.current is current
        assert handle.refused is not None
        assert (handle.refused.version, handle.refused.retryable) == (store.failing, False)
        assert (handle.since, handle.reloads) == (since, 0)
        assert live_series() == [(store.sound[0], 1.0)]
        assert (reloads("loaded"), reloads("refused")) == (before[0], before[1] + 1)
        assert f"summarization {store.failing} is refused" in caplog.text
        # A sound release is loaded afterwards, and the refusal is no longer reported.
        announce(store.sound[1])
        await until(lambda: handle.reloads == 1)
        assert handle.refused is None


def test_a_refusal_keeps_its_keys_in_the_status(store: Store) -> None:
    handle = new_handle(store)
    handle.refused = Refusal(store.failing, "damaged")
    assert handle.status()["refused"] == {
        "version": store.failing,
        "reason": "damaged",
        "passing": False,
    }


async def test_announcing_the_live_release_again_ends_the_refusal(store: Store) -> None:
    handle = new_handle(store, store.sound[0])
    current = handle.current
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.failing)
        await until(lambda: handle.refused is not None)
        announce(store.sound[0])
        await until(lambda: handle.refused is None)
    assert handle.current.model is current.model
    assert handle.reloads == 0


async def test_of_the_announcements_during_a_load_only_the_last_is_loaded(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = HeldLoader()
    monkeypatch.setattr(reload, "load_release", loader)
    handle = new_handle(store)
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: bool(loader.requested))
        for version in (store.failing, store.sound[1], store.sound[2]):
            announce(version)
            await asyncio.sleep(0)
        loader.may_load.set()
        await until(lambda: handle.current.version == store.sound[2])
        await asyncio.sleep(0.1)
    assert loader.requested == [store.sound[0], store.sound[2]]
    assert handle.reloads == 2
    assert handle.refused is None


async def test_a_load_does_not_block_the_event_loop(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = HeldLoader()
    monkeypatch.setattr(reload, "load_release", loader)
    handle = new_handle(store)
    current = handle.current
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: bool(loader.requested))
        for _ in range(100):
            await asyncio.sleep(0)
        assert handle.current is current
        loader.may_load.set()
        await until(lambda: handle.reloads == 1)
    assert handle.current.version == store.sound[0]


async def test_an_unexpected_error_is_a_refusal_without_the_errors_message(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(
        task: str, name: str | Path | None, settings: Settings, *, keep: bool = False
    ) -> Loaded:
        raise MemoryError("a patient's words")

    handle = new_handle(store)
    current = handle.current
    monkeypatch.setattr(reload, "load_release", out_of_memory)
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: handle.refused is not None)
    assert handle.current is current
    assert handle.refused is not None
    assert (handle.refused.reason, handle.refused.retryable) == ("MemoryError", False)


async def test_after_an_error_of_the_store_the_release_is_loaded_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "STORE_RETRY_SECONDS", 0.05)
    handle = new_handle(store)
    current = handle.current
    before = reloads("refused")
    settings = Settings(store=str(tmp_path / "mounted later"))
    async with reloading(handle, settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: reloads("refused") >= before + 2)
        assert handle.current is current
        assert handle.refused is not None
        assert (handle.refused.version, handle.refused.retryable) == (store.sound[0], True)
        deliver(open_release(store.root / "summarization" / store.sound[0]), settings.store)
        await until(lambda: handle.reloads == 1)
    assert handle.current.version == store.sound[0]
    assert handle.refused is None


async def test_the_pauses_between_attempts_grow_and_a_success_ends_them(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "STORE_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(reload, "MAX_STORE_RETRY_SECONDS", 0.1)
    pauses: list[float] = []
    loop = asyncio.get_running_loop()
    real = loop.call_later

    def call_later(delay: float, callback: Any, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        if getattr(callback, "__qualname__", "") == "Event.set":
            pauses.append(delay)
        return real(delay, callback, *arguments, **options)

    monkeypatch.setattr(loop, "call_later", call_later)
    settings = Settings(store=str(tmp_path / "mounted later"))
    handle = load_at_start("summarization", announcement(store.sound[0]), settings)
    assert handle.current.version == bundled("summarization").name
    assert fallback() == 1
    async with reloading(handle, settings) as (reloader, announce):
        for _ in range(3):
            announce(store.sound[0])  # announced again: no second timer runs beside the first
        await until(lambda: len(pauses) >= 6)
        assert pauses[:6] == [0.02, 0.04, 0.08, 0.1, 0.1, 0.1]
        assert fallback() == 1
        deliver(open_release(store.root / "summarization" / store.sound[0]), settings.store)
        await until(lambda: handle.reloads == 1)
    assert handle.current.version == store.sound[0]
    assert fallback() == 0
    assert reloader._failures == {"summarization": 0}


async def test_announcing_what_runs_in_place_of_another_release_ends_the_fallback(
    store: Store, tmp_path: Path
) -> None:
    settings = Settings(store=str(tmp_path / "nowhere"))
    handle = load_at_start("summarization", announcement(store.sound[0]), settings)
    assert fallback() == 1
    async with reloading(handle, settings) as (_, announce):
        announce(bundled("summarization").name)
        await until(lambda: fallback() == 0)
    assert handle.refused is None


async def test_a_release_that_fails_its_canary_check_is_not_loaded_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "STORE_RETRY_SECONDS", 0.01)
    handle = new_handle(store)
    before = reloads("refused")
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.failing)
        await until(lambda: handle.refused is not None)
        await asyncio.sleep(0.2)
    assert reloads("refused") == before + 1


async def test_a_pinned_task_ignores_announcements(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    handle = new_handle(store, pinned=True)
    current = handle.current
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: "but PV_RELEASES sets" in caplog.text)
        await asyncio.sleep(0.05)
    assert handle.current is current
    assert (handle.refused, handle.reloads) == (None, 0)


async def test_announcing_the_live_release_or_nothing_loads_nothing(store: Store) -> None:
    handle = new_handle(store, store.sound[0])
    current = handle.current
    async with reloading(handle, store.settings) as (reloader, announce):
        announce(store.sound[0])
        await until(lambda: not reloader._changed["summarization"].is_set())
        reloader._announcements.clear()
        reloader._changed["summarization"].set()
        await until(lambda: not reloader._changed["summarization"].is_set())
    assert handle.current.model is current.model
    assert handle.reloads == 0


async def test_after_a_swap_the_old_model_is_freed_when_no_batch_uses_it(tmp_path: Path) -> None:
    release: Release = variant("ner", tmp_path, "another")
    settings = Settings(store=str(tmp_path), dtype="float32")
    handle = Handle(load_release("ner", None, settings))
    old = weakref.ref(handle.current.model)
    weights = weakref.ref(handle.current.model.encoder.model.layers[0].inner.bias)  # type: ignore[attr-defined]
    batch: list[Loaded] = [handle.current]
    async with reloading(handle, settings) as (_, announce):
        announce(release.version)
        await until(lambda: handle.reloads == 1)
        assert old() is batch[0].model
        batch.clear()
        gc.collect()
        assert old() is None
        assert weights() is None
        assert handle.current.version == release.version


async def test_the_reloader_collects_an_old_model_that_refers_to_itself(store: Store) -> None:
    handle = Handle(load_release("summarization", None, store.settings))
    setattr(handle.current.model, "itself", handle.current.model)  # noqa: B010  no model has this attribute
    old = weakref.ref(handle.current.model)
    gc.disable()
    try:
        async with reloading(handle, store.settings) as (_, announce):
            announce(store.sound[0])
            await until(lambda: handle.reloads == 1)
            await until(lambda: old() is None)
    finally:
        gc.enable()
    assert handle.current.version == store.sound[0]


async def test_a_release_has_the_generation_of_its_announcement_and_a_rollback_a_higher_one(
    store: Store,
) -> None:
    handle = new_handle(store, store.sound[0])
    first = handle.current
    assert first.generation == 0, "it was not announced"
    async with reloading(handle, store.settings) as (_, announce):
        for generation, version in enumerate((store.sound[0], store.sound[1], store.sound[0]), 1):
            announce(version)
            await until(lambda n=generation: handle.current.generation == n)  # type: ignore[misc]
            assert handle.current.version == version
    assert first.generation == 0, "a batch that took the release before has one generation to its end"
    assert handle.reloads == 2, "the release that was live already is not loaded again"


async def test_a_pinned_release_keeps_the_generation_0(store: Store) -> None:
    handle = new_handle(store, store.sound[0], pinned=True)
    async with reloading(handle, store.settings) as (reloader, announce):
        announce(store.sound[0])
        await until(lambda: "summarization" in reloader._announcements)
        await until(lambda: not reloader._changed["summarization"].is_set())
    assert handle.current.generation == 0
