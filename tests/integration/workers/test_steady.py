"""A steady load from a live feed through all stages for some minutes."""

from __future__ import annotations

import asyncio
import statistics
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from streams.topics import EVENTS
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site
from tests.integration.sources.found import counting
from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.world import World

pytestmark = pytest.mark.kafka
#: Posts, of which some are edited or deleted, and how many of all happenings come in a second: about half of
#: what a worker with tiny models on two processors does.
POSTS, RATE = 12_000, 100.0
#: Reports that the source looks for duplicates in: few, so that they are all there soon.
WINDOW = 1000
SAMPLE_SECONDS, DRAIN_SECONDS = 2.0, 300.0


def resident(process: processes.Running) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def growth(values: list[float]) -> float:
    """How much higher the median of the last third is than that of the third before it, as a share."""
    third = len(values) // 3
    before, last = (statistics.median(part) for part in (values[third : 2 * third], values[2 * third :]))
    return last / before - 1


async def test_under_a_steady_load_every_report_comes_out_and_memory_and_lag_stay_level(
    kafka: LocalKafka, tmp_path: Path, pinned: str
) -> None:
    world = World.made(1, POSTS, delete_first=False)
    env = {"PV_RELEASES": pinned, "PV_DUPLICATE_REPORTS": str(WINDOW)}
    site = await asyncio.to_thread(partial(Site, kafka, tmp_path, **env))
    lag: list[float] = []
    memory: list[tuple[float, ...]] = []
    async with AsyncExitStack() as stack:
        player = await stack.enter_async_context(Jetstream(world, rate=RATE))
        player.keeps_alive = True
        found = await stack.enter_async_context(counting(site.settings, EVENTS.name))
        up = await asyncio.to_thread(stack.enter_context, site.running("up"))
        await asyncio.to_thread(site.wait_ready, 400.0)
        command = ("source", "bluesky", "--bluesky-server", player.endpoint, "--all")
        beside = site.running(*command, PV_HTTP_PORT=str(processes.free_port()))
        source = await asyncio.to_thread(stack.enter_context, beside)
        async with asyncio.timeout(len(world.happenings) / RATE + DRAIN_SECONDS):
            while not world.is_over or found.records < len(world.happenings):
                await asyncio.sleep(SAMPLE_SECONDS)
                assert (up.poll(), source.poll()) == (None, None), site.log.read_text()
                if not world.is_over:
                    lag.append((world.published - found.records) / RATE)
                    memory.append((resident(up), resident(source)))
    figures = found.compared({post_id(number): text for number, text in world.final.items()})
    assert (figures["lost"], figures["deletions_missing"], figures["other_keys"]) == (0, 0, 0), figures
    assert figures["deletions"] > 1000
    assert statistics.median(lag[-len(lag) // 3 :]) < 30, lag
    assert max(growth(list(own)) for own in zip(*memory, strict=True)) < 0.2, memory
