"""The process of a candidate: it answers as the live model does, and its end frees who waits for it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from models.releases.store import bundled
from streams.releases.opening import load_release
from streams.releases.shadow import CandidateProcess
from streams.settings import Settings
from tests.streams.releases.test_shadow import SECONDS, STAGE, reports


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(store=str(tmp_path / "store"), dtype="float32")


@asynccontextmanager
async def candidate(version: str, settings: Settings) -> AsyncIterator[CandidateProcess]:
    process = await asyncio.to_thread(CandidateProcess, STAGE.name, version, settings)
    try:
        yield process
    finally:
        await asyncio.to_thread(process.kill)
        assert not process._process.is_alive()


async def test_the_process_answers_as_the_live_model_does_until_it_is_killed(settings: Settings) -> None:
    version = bundled(STAGE.name).name
    live = load_release(STAGE.name, None, settings)
    async with candidate(version, settings) as process, asyncio.timeout(SECONDS):
        assert await process.wait_loaded() is None
        assert await process.predict(reports()) == STAGE.predict(live.model, reports())
        # What the model cannot read is not the end of the process.
        assert await process.predict([object()]) is None
        assert await process.predict(reports(1)) == STAGE.predict(live.model, reports(1))
        # Stopped first, so that it cannot answer before it is killed.
        assert process._process.pid is not None
        os.kill(process._process.pid, signal.SIGSTOP)
        waiting = asyncio.create_task(process.predict(reports()))
        await asyncio.sleep(0.05)
        process._process.kill()
        with pytest.raises((EOFError, OSError)):
            await waiting
        process._process.join(5)
        with pytest.raises((EOFError, OSError)):
            await process.predict(reports())


async def test_a_process_that_is_killed_while_it_loads_frees_who_waits(settings: Settings) -> None:
    async with candidate(bundled(STAGE.name).name, settings) as process, asyncio.timeout(SECONDS):
        waiting = asyncio.create_task(process.wait_loaded())
        await asyncio.sleep(0.05)
        process._process.kill()
        with pytest.raises(EOFError):
            await waiting


async def test_a_process_that_was_gone_before_it_was_asked_gives_the_same_error(settings: Settings) -> None:
    async with candidate(bundled(STAGE.name).name, settings) as process, asyncio.timeout(SECONDS):
        process._process.kill()
        await asyncio.to_thread(process._process.join, 5)
        with pytest.raises(EOFError):
            await process.predict(reports())


async def test_ending_the_process_frees_who_waits(settings: Settings) -> None:
    process = await asyncio.to_thread(CandidateProcess, STAGE.name, bundled(STAGE.name).name, settings)
    waiting = asyncio.create_task(process.wait_loaded())
    await asyncio.sleep(0.05)
    started = time.monotonic()
    await asyncio.to_thread(process.kill)
    assert time.monotonic() - started < 5
    with pytest.raises((EOFError, OSError)):
        async with asyncio.timeout(SECONDS):
            await waiting


async def test_a_version_that_is_not_there_is_refused_with_its_reason(settings: Settings) -> None:
    async with candidate("0" * 12, settings) as process, asyncio.timeout(SECONDS):
        refusal = await process.wait_loaded()
    assert refusal is not None
    assert refusal.version == "0" * 12
    assert refusal.reason == f"summarization {'0' * 12} is not in the store {settings.store}"
