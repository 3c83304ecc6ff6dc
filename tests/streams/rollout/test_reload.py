"""The change of the live release while a worker runs."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

from models.loading import Loaded
from models.releases.manifest import Release
from streams.rollout import reload
from streams.rollout.handle import Handle
from streams.rollout.opening import load_release
from streams.settings import Settings
from tests.streams.polling import until
from tests.streams.rollout.reloading import (
    HeldLoader,
    Store,
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


async def test_a_pinned_task_ignores_announcements(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    handle = new_handle(store, pinned=True)
    current = handle.current
    async with reloading(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: "but PV_RELEASES sets" in caplog.text)
        await asyncio.sleep(0.05)
    assert handle.current is current
    assert (handle.refused, handle.reloads, current.generation) == (None, 0, 0)


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
