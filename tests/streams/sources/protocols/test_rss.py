from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import orjson
import pytest

from streams.sources.protocols import rss
from streams.sources.protocols.rss import Rss, asked_pause
from streams.topics import MAX_MESSAGE
from tests.streams.polling import until
from tests.streams.sources.kept import FAST, KeptDelivery, runner
from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.feeds import HEAD, Feed, item
from tests.streams.sources.players.running import running, sample
from tests.streams.sources.players.world import Happening, World


def made(feed: Feed, **options: float) -> Rss:
    return Rss(url=feed.address, backoff=FAST, every=options.get("every", 0.02))


def entries(*numbers: int, text: str = "awake") -> list[Happening]:
    return [Happening(kind="create", number=n, text=f"{text} {n}") for n in numbers]


async def test_an_entry_is_a_post_with_its_title_and_text() -> None:
    delivery = KeptDelivery()
    async with Feed(World(entries(1, 2))) as feed:
        source = made(feed)
        async with running(runner(source, delivery)):
            await until(lambda: len(delivery.sent) == 2)
    assert list(delivery.state().values()) == ["Case 1\nawake 1", "Case 2\nawake 2"]
    assert all(key.startswith("rss:") and "planted-key" not in key for key in delivery.state())
    assert "planted-key" not in source.key + repr(source)


async def test_a_feed_is_read_again_only_where_it_has_changed_and_its_changed_entries_are_sent() -> None:
    delivery, world = KeptDelivery(), World(entries(1, 2))
    async with Feed(world) as feed, running(runner(made(feed), delivery)):
        await until(lambda: feed.statuses[-3:] == [304] * 3)
        assert len(delivery.sent) == 2
        for changed, number, tag in ((entries(2, text="corrected"), 3, '"3"'), (entries(3), 4, '"4"')):
            world.happenings += changed
            world.publish(1)
            await until(lambda number=number: len(delivery.sent) == number)  # type: ignore[misc]
            await until(lambda tag=tag: feed.requests[-1].get("If-None-Match") == tag)  # type: ignore[misc]
        await asyncio.sleep(0.1)
    assert list(delivery.state().values()) == ["Case 1\nawake 1", "Case 2\ncorrected 2", "Case 3\nawake 3"]
    assert len(delivery.sent) == 4


async def test_after_a_restart_only_what_is_new_is_sent() -> None:
    first, second, world = KeptDelivery(), KeptDelivery(), World(entries(1, 2))
    async with Feed(world) as feed:
        one = runner(made(feed), first)
        async with running(one):
            await until(lambda: len(first.sent) == 2 and feed.statuses[-1] == 304)
        await one.checkpoint()
        world.happenings += entries(3)
        world.publish(1)
        async with running(runner(made(feed), second, first.positions[-1][1])):
            await until(lambda: len(second.sent) == 1)
    assert list(second.state().values()) == ["Case 3\nawake 3"]


async def test_entries_that_were_missing_in_a_truncated_document_are_read_though_its_tag_stays() -> None:
    """With complete HTTP framing, as a broken generator or cache answers."""
    delivery, world = KeptDelivery(), World(entries(*range(9)))
    world.publish(9)
    faults = Faults(seed=0, count=1, every=1, kinds=("malformed",))
    async with Feed(world, faults=faults) as feed, running(runner(made(feed), delivery)):
        await until(lambda: len(delivery.state()) == 9)
    assert faults.made["malformed"] == 1


async def test_an_answer_that_takes_too_long_is_asked_for_again() -> None:
    delivery = KeptDelivery()
    faults = Faults(seed=0, count=1, every=1, kinds=("silence",), silence=5.0)
    async with Feed(World(entries(1)), faults=faults) as feed:
        source = Rss(url=feed.address, backoff=FAST, every=0.02, patience=0.1)
        async with running(runner(source, delivery)):
            await until(lambda: len(delivery.sent) == 1)


@pytest.mark.parametrize("status", [503, 429, 404])
async def test_a_feed_may_ask_to_wait_and_one_that_is_gone_is_asked_again(status: int) -> None:
    delivery = KeptDelivery()
    async with Feed(World(entries(1))) as feed:
        feed.refuse = [(status, {"Retry-After": "1"})]
        source = Rss(url=feed.address, every=0.02)
        began = time.monotonic()
        async with running(runner(source, delivery)):
            await until(lambda: len(delivery.sent) == 1)
    assert time.monotonic() - began >= 1.0
    assert feed.statuses[:2] == [status, 200]


@pytest.mark.parametrize("host", ["a..example", "a" * 70 + ".example"])
async def test_a_redirection_to_a_host_that_is_none_does_not_end_the_source(host: str) -> None:
    delivery = KeptDelivery()
    async with Feed(World(entries(1))) as feed:
        feed.refuse = [(302, {"Location": f"http://{host}/"})]
        async with running(runner(made(feed), delivery)):
            await until(lambda: len(delivery.sent) == 1)


@pytest.mark.parametrize(
    ("ttl", "seconds"), [("60", 3600), ("86400", 86400), ("9" * 400, 86400), ("soon", 0), (None, 0)]
)
def test_a_feed_may_ask_for_a_pause_of_a_day_at_most(ttl: str | None, seconds: float) -> None:
    assert asked_pause(ttl) == seconds


async def test_the_pause_that_a_feed_asks_for_holds_while_it_is_unchanged_and_after_a_restart() -> None:
    delivery = KeptDelivery()
    async with Feed(World(entries(1))) as feed:
        feed.bodies = [f"{HEAD}<ttl>60</ttl>{item(entries(1)[0])}</channel></rss>".encode()]
        one = runner(made(feed), delivery)
        async with running(one):
            await until(lambda: one.position is not None and feed.world.published == 1)
        await one.checkpoint()
        position = {**delivery.positions[-1][1], "etag": '"1"'}
        async with running(runner(made(feed), delivery, position)):
            await until(lambda: bool(feed.statuses))
            await asyncio.sleep(0.2)
    assert feed.statuses == [304]


async def test_a_large_feeds_position_fits_no_entry_is_sent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = {f"{n:016x}": f"{n:016x}" for n in range(rss.MAX_KEPT)}
    assert len(orjson.dumps(largest)) < MAX_MESSAGE - 4096
    monkeypatch.setattr(rss, "MAX_KEPT", 100)
    items = "".join(f"<item><guid>{n}</guid><title>{n}</title></item>" for n in range(200)).encode()
    async with Feed(World(entries(1))) as feed:
        feed.bodies = [HEAD.encode() + items + end + b"</channel></rss>" for end in (b"", b"<x/>")]
        async with aclosing(Rss(url=feed.address, every=0.01).read(None)) as steps:
            first, second = await anext(steps), await anext(steps)
    assert (len(first.items), second.items) == (200, ())
    assert first.position is not None
    assert len(first.position["seen"]) == 100
    assert second.position == first.position


async def test_what_is_no_feed_and_an_entry_without_a_text_are_left_out() -> None:
    def count(name: str, **labels: str) -> float:
        return sample(name, source="rss", **labels)

    delivery, name = KeptDelivery(), "pv_source_items_total"
    http, empty = count("pv_source_reconnects_total", reason="http"), count(name, outcome="empty")
    without = f"{HEAD}<item><guid>x</guid></item>{item(entries(9)[0])}</channel></rss>".encode()
    async with Feed(World(entries(1))) as feed:
        feed.bodies = [b"<html>not a feed", b"", b"\x00\xff", without]
        async with running(runner(made(feed), delivery)):
            await until(lambda: len(delivery.sent) == 2)
    assert count("pv_source_reconnects_total", reason="http") == http + 3
    assert count(name, outcome="empty") == empty + 1


@pytest.mark.parametrize(
    "moment", ["0000-00-00 00:00:00", "0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00"]
)
async def test_an_entry_whose_time_is_outside_of_the_calendar_is_sent_without_it(moment: str) -> None:
    delivery = KeptDelivery()
    async with Feed(World([])) as feed:
        dated = f"<item><guid>a</guid><title>Awake</title><pubDate>{moment}</pubDate></item>"
        feed.bodies = [f"{HEAD}{dated}</channel></rss>".encode()]
        async with running(runner(made(feed), delivery)):
            await until(lambda: len(delivery.sent) == 1)
    assert "created_at" not in orjson.loads(delivery.sent[0][2] or b"")


async def test_entities_of_a_feed_are_not_expanded_without_bound_nor_files_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("planted")
    bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 10}">' for n in range(12))
    hostile = (
        f'<?xml version="1.0"?><!DOCTYPE rss [{bomb}<!ENTITY file SYSTEM "{file.as_uri()}">]>'
        "<rss version='2.0'><channel><item><guid>a</guid><title>&e11;</title></item>"
        "<item><guid>b</guid><title>file: &file;</title></item></channel></rss>"
    ).encode()
    delivery = KeptDelivery()
    async with Feed(World(entries(1))) as feed:
        feed.bodies = [hostile]
        async with running(runner(made(feed), delivery)):
            await until(lambda: "Case 1\nawake 1" in delivery.state().values())
    texts = [text or "" for text in delivery.state().values()]
    assert max(map(len, texts)) < 10_000
    assert not any("planted" in text for text in texts)
