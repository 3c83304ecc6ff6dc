"""The change of the live release while a worker runs, and announced releases that cannot be loaded."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from models.loading import Loaded
from models.releases.manifest import PassingError, Release
from models.releases.remote import deliver
from models.releases.store import bundled, open_release
from streams.rollout import reload
from streams.rollout.handle import Handle
from streams.rollout.loading import load_release
from streams.rollout.reload import load_at_start
from streams.settings import Settings
from tests.streams.polling import until
from tests.streams.rollout.reloading import (
    HeldLoader,
    Store,
    announcement,
    fallback,
    live_series,
    new_handle,
    reloading,
    reloads,
)
from tests.variants import variant

pytestmark = pytest.mark.usefixtures("empty_gauge")


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


async def test_of_the_announcements_during_a_load_only_the_last_is_loaded(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = HeldLoader()
    monkeypatch.setattr(reload, "load_release", loader)
    handle = new_handle(store)
    current = handle.current
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: bool(loader.requested))
        for version in (store.failing, store.sound[1], store.sound[2]):
            announce(version)
            await asyncio.sleep(0)
        assert handle.current is current, "and the loop goes on"
        loader.may_load.set()
        await until(lambda: handle.current.version == store.sound[2])
        await asyncio.sleep(0.1)
    assert loader.requested == [store.sound[0], store.sound[2]]
    assert handle.reloads == 2
    assert handle.refused is None


async def test_a_pinned_task_ignores_announcements(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    handle = new_handle(store, pinned=True)
    current = handle.current
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: "but PV_RELEASES sets" in caplog.text)
        await asyncio.sleep(0.05)
    assert handle.current is current
    assert (handle.refused, handle.reloads, current.generation) == (None, 0, 0)


async def test_announcing_the_live_release_or_nothing_loads_nothing_and_ends_a_refusal(store: Store) -> None:
    handle = new_handle(store, store.sound[0])
    current = handle.current
    async with reloading(handle, store.settings) as (reloader, announce):
        announce(store.sound[0])
        await until(lambda: not reloader._changed["summarization"].is_set())
        reloader._announcements.clear()
        reloader._changed["summarization"].set()
        await until(lambda: not reloader._changed["summarization"].is_set())
        announce(store.failing)
        await until(lambda: handle.refused is not None)
        announce(store.sound[0])
        await until(lambda: handle.refused is None)
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


async def test_a_release_has_its_announcements_generation_and_a_rollback_a_higher_one(store: Store) -> None:
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


async def test_a_refused_release_changes_nothing_and_is_not_loaded_again(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "STORE_RETRY_SECONDS", 0.01)
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
        refused = handle.status()["refused"]
        assert (refused["version"], refused["passing"]) == (store.failing, False)
        assert "canary" in refused["reason"]
        await asyncio.sleep(0.2)
        assert (reloads("loaded"), reloads("refused")) == (before[0], before[1] + 1)
        assert f"summarization {store.failing} is refused" in caplog.text
        # A sound release is loaded afterwards, and the refusal is no longer reported.
        announce(store.sound[1])
        await until(lambda: handle.reloads == 1)
        assert handle.refused is None


async def test_an_unexpected_error_is_a_refusal_without_the_errors_message(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(task: str, name: str | Path | None, settings: Settings, *, keep: bool = False) -> Loaded:
        raise ValueError("a patient's words")

    handle = new_handle(store)
    current = handle.current
    monkeypatch.setattr(reload, "load_release", fails)
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: handle.refused is not None)
    assert handle.current is current
    assert handle.refused is not None
    assert (handle.refused.reason, handle.refused.retryable) == ("ValueError", False)


async def test_a_release_short_of_memory_loads_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "STORE_RETRY_SECONDS", 0.05)
    failures = [MemoryError(), PassingError("can't allocate memory")]

    def at_first_fails(*arguments: Any, **options: Any) -> Loaded:
        if failures:
            raise failures.pop()
        return load_release(*arguments, **options)

    monkeypatch.setattr(reload, "load_release", at_first_fails)
    handle = new_handle(store)
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: handle.reloads == 1)
    assert (handle.current.version, handle.refused) == (store.sound[0], None)


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
        assert handle.refused is not None
        assert (handle.refused.version, handle.refused.retryable) == (store.sound[0], True)
        assert fallback() == 1
        deliver(open_release(store.root / "summarization" / store.sound[0]), settings.store)
        await until(lambda: handle.reloads == 1)
    assert handle.current.version == store.sound[0]
    assert handle.status()["refused"] is None
    assert fallback() == 0
    assert reloader._failures == {"summarization": 0}


async def test_announcing_what_runs_instead_ends_the_fallback(store: Store, tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "nowhere"))
    handle = load_at_start("summarization", announcement(store.sound[0]), settings)
    assert fallback() == 1
    async with reloading(handle, settings) as (_, announce):
        announce(bundled("summarization").name)
        await until(lambda: fallback() == 0)
    assert handle.refused is None
