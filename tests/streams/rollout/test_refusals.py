"""Announced releases that cannot be loaded: each is refused, or loaded again, and the live model stays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from models.loading import Loaded
from models.releases.manifest import PassingError
from models.releases.remote import deliver
from models.releases.store import bundled, open_release
from streams.rollout import reload
from streams.rollout.opening import load_release
from streams.rollout.reload import load_at_start
from streams.settings import Settings
from tests.streams.polling import until
from tests.streams.rollout.reloading import (
    Store,
    announcement,
    fallback,
    live_series,
    new_handle,
    reloading,
    reloads,
)

pytestmark = pytest.mark.usefixtures("empty_gauge")


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


async def test_a_release_for_which_memory_did_not_suffice_is_loaded_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
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
