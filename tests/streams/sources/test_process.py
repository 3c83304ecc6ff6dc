"""Sources in a process of their own kind, against an embedded broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import orjson
import pytest
from aiokafka import AIOKafkaProducer

from streams import topics
from streams.broker.consumer import running_client
from streams.broker.embedded import EmbeddedBroker
from streams.broker.ranges import read_range
from streams.settings import Settings
from streams.sources.catalog import Options, make_sources
from streams.sources.delivery import read_positions
from streams.sources.process import SourceProcess
from streams.sources.protocols.bluesky import Bluesky
from streams.sources.protocols.ndjson import Ndjson
from streams.sources.source import Interrupted, Source, SourceFailed
from streams.sources.sweep import Sweep, kept_on
from streams.topics import POSTS, TopicsError
from tests.streams.polling import until
from tests.streams.sources.kept import FAST, Scripted
from tests.streams.sources.pass_all import PassAll
from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.world import Happening, World


@pytest.fixture
def settings() -> Iterator[Settings]:
    with EmbeddedBroker("live.") as broker:
        yield Settings(broker=f"kafka://{broker.bootstrap}", prefix="live.", http_port=0)


@asynccontextmanager
async def running(settings: Settings, *sources: Source) -> AsyncIterator[SourceProcess]:
    """A process for the time of the block, stopped as by a signal."""
    process = SourceProcess(sources, PassAll(), settings)
    task = asyncio.create_task(process.run())
    try:
        await until(lambda: task.done() or bool(process.readiness()))
        yield process
    finally:
        process.stop()
        await task


async def on_topic(settings: Settings) -> list[tuple[str, str | None]]:
    """Id and text of everything on the topic, None for a tombstone, each key in its order."""
    records = await read_range(settings, POSTS, "beginning", "end", lambda done, total: None)
    return [
        ((r.key or b"").decode(), None if r.value is None else orjson.loads(r.value)["text"]) for r in records
    ]


def has_read(process: SourceProcess, happening: Happening) -> bool:
    """Whether a process with Bluesky alone has read what a player has sent, which sets `at` before."""
    reached = [(runner.position or {}).get("time_us", 0) for runner in process._runners]
    return happening.at > 0 and any(at >= round(happening.at * 1e6) for at in reached)


async def test_a_stopped_process_leaves_nothing_unconfirmed_the_next_resumes(settings: Settings) -> None:
    world = World.made(seed=1, posts=300)
    async with Jetstream(world, rate=2000) as server:
        for last in (len(world.happenings) // 2, -1):
            source = Bluesky(servers=[server.endpoint], backoff=FAST, rewind=0.0)
            async with running(settings, source) as process:
                await until(partial(has_read, process, world.happenings[last]))
            (runner,) = process._runners
            assert (await read_positions(settings))["bluesky"] == runner.position
    found = await on_topic(settings)
    assert dict(found) == {post_id(n): text for n, text in world.final.items()}
    assert len(found) <= len(world.happenings) + 1


async def test_several_sources_run_in_one_process_and_its_server_tells_which_are_ready(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "posts.jsonl"
    file.write_text('{"id": "own", "text": "awake"}\n')
    async with Jetstream(World([])) as server:
        source = Bluesky(servers=[server.endpoint], backoff=FAST)
        async with running(settings, source, Ndjson(path=file)) as process, aiohttp.ClientSession() as client:
            await until(lambda: all(process.readiness().values()))
            url = f"http://127.0.0.1:{process.http_port}"
            async with client.get(f"{url}/health/ready") as answer:
                assert (answer.status, await answer.json()) == (200, {"bluesky": True, "ndjson": True})
            async with client.get(f"{url}/metrics") as answer:
                assert 'pv_source_up{source="bluesky"} 1.0' in await answer.text()
            server.refuse = [(503, {"Retry-After": "60"})] * 99
            await server.__aexit__(None, None, None)
            await until(lambda: not process.readiness()["bluesky"])
            async with client.get(f"{url}/health/ready") as answer:
                assert answer.status == 503
            async with client.get(f"{url}/health/live") as answer:
                assert answer.status == 200
    assert await on_topic(settings) == [("own", "awake")]


async def test_a_refusal_or_a_missing_topic_ends_the_process_with_the_reason(settings: Settings) -> None:
    process = SourceProcess([Scripted(SourceFailed("no such token"))], PassAll(), settings)
    with pytest.raises(SourceFailed, match="no such token"):
        await process.run()
    other = settings.model_copy(update={"prefix": "other."})
    with pytest.raises(TopicsError, match=r"other\.cursors"):
        await SourceProcess([Scripted()], PassAll(), other).run()


async def test_the_ids_that_are_kept_have_no_tombstone(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "posts.jsonl"
    lines = [{"id": f"x:{n}", "text": "awake"} for n in range(3)] + [{"id": "x:1", "deleted": True}]
    file.write_bytes(
        b"".join(orjson.dumps(line) + b"\n" for line in [*lines, {"id": "y:1", "text": "awake"}])
    )
    await SourceProcess([Ndjson(path=file, follow=False)], PassAll(), settings).run()
    assert sorted(await kept_on(settings, topics.EVENTS, POSTS)("x:")) == ["x:0", "x:2"]


async def test_a_sweep_passes_keys_that_are_no_text_and_asks_for_summaries(settings: Settings) -> None:
    producer = AIOKafkaProducer(**settings.client())
    async with running_client(producer):
        for key in (b"x:\xff", b"x:1"):
            await producer.send_and_wait(topics.broker_name(settings, "posts"), b"{}", key)
    assert await kept_on(settings, POSTS)("x:") == ["x:1"]
    options = Options(topic="questions", mastodon_servers=["https://a.example"])
    sweep = make_sources(["mastodon"], options, settings)[1]
    assert isinstance(sweep, Sweep)
    producer = AIOKafkaProducer(**settings.client())
    async with running_client(producer):
        name = topics.broker_name(settings, "summaries")
        await producer.send_and_wait(name, b"{}", b"mastodon:a.example:1")
    assert await sweep.kept(sweep.prefix) == ["mastodon:a.example:1"]


async def test_a_broker_that_is_away_at_the_time_of_a_sweep_interrupts_it_only() -> None:
    options = Options(mastodon_servers=["https://a.example"])
    sweep = make_sources(["mastodon"], options, Settings(broker="kafka://127.0.0.1:1"))[1]
    async with aclosing(sweep.read(None)) as steps:
        await anext(steps)
        with pytest.raises(Interrupted, match="network: KafkaConnectionError"):
            await anext(steps)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mastodon", Options(mastodon_servers=["https://a.example", "b.example"])),
        ("rss", Options(feeds=["feeds.example/all.xml"])),
        ("bluesky", Options(bluesky_servers=["jetstream.example:443/subscribe"])),
        ("mastodon", Options(mastodon_servers=["https://"])),
        ("rss", Options(feeds=["https://feeds..example/all.xml"])),
    ],
)
def test_an_address_that_can_never_be_reached_is_refused(name: str, options: Options) -> None:
    with pytest.raises(SourceFailed, match=name):
        make_sources([name], options, Settings())
