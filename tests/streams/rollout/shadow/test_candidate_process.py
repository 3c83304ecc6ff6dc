"""The process of a candidate: it gives the live model's outputs, and its end ends every waiting call."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from models.releases.remote import deliver
from models.releases.store import bundled, open_release
from streams.rollout.opening import load_release
from streams.rollout.shadow import CandidateProcess
from streams.settings import Settings
from tests.streams.rollout.shadow.shadowing import NO_VERSION, STAGE, reports

#: Limit for a test, most of it for the start of a process, which runs at the lowest priority.
SECONDS = 300.0


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


@pytest.mark.slow
async def test_the_process_gives_the_live_models_outputs_until_it_is_killed(settings: Settings) -> None:
    version = bundled(STAGE.name).name
    # The process finds it in the store: what is bundled in this process is not what is bundled in another.
    deliver(open_release(bundled(STAGE.name)), settings.store)
    live = load_release(STAGE.name, None, settings)
    async with candidate(version, settings) as process, asyncio.timeout(SECONDS):
        assert await process.wait_loaded() is None
        assert await process.predict(reports()) == STAGE.predict(live.model, reports())
        # An input on which the model raises does not end the process.
        assert await process.predict([object()]) is None
        assert await process.predict(reports(1)) == STAGE.predict(live.model, reports(1))
        # Stopped first, so that it cannot give an output before it is killed.
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


async def test_killing_the_process_ends_a_waiting_call(settings: Settings) -> None:
    process = await asyncio.to_thread(CandidateProcess, STAGE.name, bundled(STAGE.name).name, settings)
    waiting = asyncio.create_task(process.wait_loaded())
    await asyncio.sleep(0.05)
    started = time.monotonic()
    await asyncio.to_thread(process.kill)
    assert time.monotonic() - started < 5
    with pytest.raises((EOFError, OSError)):
        async with asyncio.timeout(SECONDS):
            await waiting


@pytest.mark.slow
async def test_a_version_that_is_not_in_the_store_is_refused_with_the_reason(settings: Settings) -> None:
    async with candidate(NO_VERSION, settings) as process, asyncio.timeout(SECONDS):
        refusal = await process.wait_loaded()
    assert refusal is not None
    assert refusal.version == NO_VERSION
    assert refusal.reason == f"summarization {NO_VERSION} is not in the store {settings.store}"
