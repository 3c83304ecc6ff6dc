"""Feeds that would stop the parser, and entries that it fails at."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from pathlib import Path

import orjson
import pytest

from streams.sources.protocols.feed_child import CPU_SECONDS, read_feed
from streams.sources.protocols.feed_reader import MAX_FEED, FeedReader
from streams.sources.protocols.rss import Rss
from streams.sources.source import Interrupted
from tests.streams.polling import until
from tests.streams.sources.kept import FAST, KeptDelivery, runner
from tests.streams.sources.players.feeds import HEAD, Feed, item
from tests.streams.sources.players.running import running, sample
from tests.streams.sources.players.world import Happening, World

N = 300_000
END = "</channel></rss>"


def entry(number: int, inside: str = "") -> str:
    happening = Happening(kind="create", number=number, text=f"awake {number}")
    return item(happening).replace("</item>", f"{inside}</item>")


#: The parser takes minutes for it.
HOSTILE = HEAD.replace("<rss", "\n" * N + "<rss") + END


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def processor_seconds(pid: int) -> float:
    """What a process has taken of the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def test_comments_without_an_end_are_read_as_text() -> None:
    """The library's cleaning of markup takes minutes for them, and is not asked."""
    marks = "<!--" * (N // 4)
    feed = f"{HEAD}<item><description><![CDATA[{marks}]]></description></item>{END}"
    assert [e["text"] for e in orjson.loads(read_feed(feed.encode()))["entries"]] == [marks]


async def test_a_hostile_feed_does_not_stop_the_others_and_is_asked_again_later() -> None:
    delivery, reader = KeptDelivery(), FeedReader(seconds=1.0)
    before = sample("pv_source_reconnects_total", source="hostile", reason="hostile")
    good = [World([Happening(kind="create", number=n, text=f"awake {n}")]) for n in (1, 2)]
    async with Feed(World([])) as bad, Feed(good[0]) as one, Feed(good[1]) as two:
        bad.bodies = [HOSTILE.encode()] * 2
        sources = [
            Rss(url=feed.address, name=name, backoff=FAST, every=0.02, reader=reader)
            for feed, name in ((bad, "hostile"), (one, "rss"), (two, "rss-2"))
        ]
        async with running(*(runner(source, delivery) for source in sources)):
            await until(
                lambda: sample("pv_source_reconnects_total", source="hostile", reason="hostile") == before + 2
            )
            await until(lambda: len(delivery.state()) == 2)
    assert set(delivery.state().values()) == {"Case 1\nawake 1", "Case 2\nawake 2"}


@pytest.mark.slow
async def test_the_system_ends_a_process_that_takes_ten_seconds_of_the_processor() -> None:
    async with FeedReader(seconds=300.0) as reader:
        await reader.read(f"{HEAD}{entry(1)}{END}".encode())
        pid = reader.pid
        assert pid is not None
        taken = processor_seconds(pid)
        _, hard = resource.prlimit(pid, resource.RLIMIT_CPU)
        reading = asyncio.create_task(reader.read(HOSTILE.encode()))
        await until(lambda: processor_seconds(pid) > taken + 0.2)
        seconds, _ = resource.prlimit(pid, resource.RLIMIT_CPU)
        assert CPU_SECONDS == 10 and taken + 9 < seconds < taken + 12
        resource.prlimit(pid, resource.RLIMIT_CPU, (1, hard))  # as if they were over
        with pytest.raises(Interrupted, match="hostile"):
            await reading
        assert (await reader.read(f"{HEAD}{entry(1)}{END}".encode()))["entries"]


@pytest.mark.slow
async def test_a_feed_that_needs_more_memory_than_allowed_is_hostile() -> None:
    async with FeedReader() as reader:
        with pytest.raises(Interrupted, match="hostile"):
            await reader.read(b"x" * (180 << 20))
        assert (await reader.read(f"{HEAD}{entry(1)}{END}".encode()))["entries"]


async def test_the_process_is_reused_and_ends_with_its_last_user_also_amid_a_feed() -> None:
    async with FeedReader() as reader:
        await reader.read(f"{HEAD}{entry(1)}{END}".encode())
        first = reader.pid
        async with reader:
            await reader.read(f"{HEAD}{entry(2)}{END}".encode())
        assert first is not None
        assert reader.pid == first
        reading = asyncio.create_task(reader.read(HOSTILE.encode()))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        await until(lambda: gone(first))
        await reader.read(f"{HEAD}{entry(3)}{END}".encode())
        second = reader.pid
    assert second is not None
    assert gone(second)


async def test_a_process_that_was_killed_is_started_anew() -> None:
    async with FeedReader() as reader:
        await reader.read(f"{HEAD}{entry(1)}{END}".encode())
        pid = reader.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Interrupted):
            await reader.read(f"{HEAD}{entry(1)}{END}".encode())
        assert (await reader.read(f"{HEAD}{entry(1)}{END}".encode()))["entries"]


async def test_a_feed_of_more_than_two_megabytes_is_not_read() -> None:
    delivery = KeptDelivery()
    async with Feed(World([Happening(kind="create", number=1, text="awake 1")])) as feed:
        feed.bodies = [f"{HEAD}{entry(2)}{' ' * MAX_FEED}{END}".encode()]
        source = Rss(url=feed.address, backoff=FAST, every=0.02)
        async with running(runner(source, delivery)):
            await until(lambda: len(delivery.sent) == 1)
    assert list(delivery.state().values()) == ["Case 1\nawake 1"]


@pytest.mark.parametrize(
    ("inside", "kind"),
    [
        ("<title>half &#xD800; pair</title>", "UnicodeEncodeError"),
        ("<title>&#x110000;</title>", "ValueError"),
        ("<title>&#99999999999999;</title>", "OverflowError"),
        ("<gml:pos>1 2</gml:pos>", "KeyError"),
    ],
)
@pytest.mark.parametrize("place", [0, 3, 6])
def test_of_an_entry_that_cannot_be_read_the_kind_of_error_is_kept_and_the_others_come(
    inside: str, kind: str, place: int
) -> None:
    entries = [entry(n, inside if n == place else "") for n in range(7)]
    feed = orjson.loads(read_feed(f"\ufeff \n{HEAD}{''.join(entries)}{END}".encode()))
    texts = [e["text"] for e in feed["entries"]]
    assert [n for n in range(7) if f"Case {n}\nawake {n}" in texts] == [n for n in range(7) if n != place]
    assert (feed["dropped"], feed["broken"], feed["language"]) == ({kind: 1}, True, "en-us")


async def test_an_entry_that_is_left_out_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    delivery = KeptDelivery()
    before = sample("pv_source_items_total", source="rss", outcome="unreadable")
    body = f"{HEAD}{entry(1)}{entry(2, '<gml:pos>1 2</gml:pos>')}<item><guid>3</guid></item>{END}".encode()
    async with Feed(World([])) as feed:
        feed.bodies = [body] * 3
        source = Rss(url=feed.address, backoff=FAST, every=0.01)
        async with running(runner(source, delivery)):
            await until(
                lambda: sample("pv_source_items_total", source="rss", outcome="unreadable") >= before + 3
            )
    lines = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert lines == ["rss: entries are left out: 1 have no text, 1 cannot be read (KeyError)"]
    assert list(delivery.state().values()) == ["Case 1\nawake 1"]
