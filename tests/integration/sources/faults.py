"""The source of Mastodon through random faults of its server."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from streams.intake.intake import PostIntake
from streams.settings import Settings
from streams.sources.process import SourceProcess
from streams.sources.protocols.mastodon import Mastodon
from streams.sources.source import Source
from streams.sources.sweep import Sweep, kept_on
from streams.topics import POSTS
from tests.integration.sources.behind import worked_off
from tests.integration.sources.found import Found, counting
from tests.streams.sources.kept import FAST
from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.mastodon_api import TOKEN, MastodonApi
from tests.streams.sources.players.world import World

#: Seconds that a run may take.
RUN_SECONDS = 1800.0
#: Half seconds for which the topic must stay complete.
SETTLED = 8
#: Keep-alive of the sources, and the silence of the servers, in seconds. The times of the protocols are
#: scaled down, so that a thousand faults take minutes.
KEEP_ALIVE, SILENCE = 0.4, 0.9
#: Happenings a second, and posts for each fault.
SERVER_RATE, POSTS_A_FAULT = 300.0, 14


def _sources(player: MastodonApi, settings: Settings) -> list[Source]:
    stream = Mastodon(server=player.url, token=TOKEN, backoff=FAST, silence=KEEP_ALIVE, rewind=1.0)
    sweep = Sweep(
        name="mastodon-deletions", key=f"{stream.key}/deletions", prefix=stream.prefix,
        kept=kept_on(settings, POSTS), check=stream.check, every=10.0, least=5.0, backoff=FAST,
        due=stream.missed,
    )  # fmt: skip
    return [stream, sweep]


async def fault_run(faults: int, seed: int, bootstrap: str) -> dict[str, Any]:
    """Figures of a run with `faults` faults, on a broker that has the topics."""
    began = time.monotonic()
    made = Faults(seed=seed + 1, count=faults, every=4, silence=SILENCE)
    # What happens during an interruption has no fault of its own: the stream of Mastodon has no cursor.
    world = World.made(seed, faults * POSTS_A_FAULT, delete_first=False)
    settings = Settings(broker=f"kafka://{bootstrap}", http_port=0)
    player = MastodonApi(world, made, rate=SERVER_RATE)
    player.keeps_alive = True
    with tempfile.TemporaryDirectory() as folder:
        async with player, counting(settings) as found:
            intake = PostIntake.of(settings, everything=True)
            process = SourceProcess(_sources(player, settings), intake, settings)
            await _read(process, partial(_settled, found, player))
            await asyncio.sleep(0.5)
        seconds = round(time.monotonic() - began, 1)
        behind = await worked_off(settings, found, Path(folder))
        expected = player.expected()
        figures = found.compared(expected) | behind.compared(expected, world.deleted_marks)
    counts = {"faults": sum(made.made.values()), "kills": 0, "connections": player.connections}
    return counts | figures | {"seconds": seconds}


async def _read(process: SourceProcess, settled: Callable[[asyncio.Task[None]], Awaitable[None]]) -> None:
    """Runs the sources until it is settled, or RUN_SECONDS are over."""
    task = asyncio.create_task(process.run())
    try:
        async with asyncio.timeout(RUN_SECONDS):
            await settled(task)
    except TimeoutError:
        print(f"not complete within {RUN_SECONDS:.0f} s")
    process.stop()
    await task


async def _settled(found: Found, player: MastodonApi, task: asyncio.Task[None]) -> None:
    """Waits until the world is over and the topic has all of it, and still has it after the last repeats:
    after an interruption an edited post comes first as it was.
    """
    complete = 0
    while complete < SETTLED and not task.done():
        await asyncio.sleep(0.5)
        figures = found.compared(player.expected())
        missing = figures["lost"] + figures["deletions_missing"]
        complete = complete + 1 if player.is_over and not missing else 0
