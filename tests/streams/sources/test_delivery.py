from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError

from streams.broker.embedded import EmbeddedBroker
from streams.codec import decode, encode
from streams.records import Cursor
from streams.settings import Settings
from streams.sources.delivery import Delivery, Window, confirmed, read_positions
from streams.topics import CURSORS
from tests.integration.processes import produce
from tests.wire import wire_bytes

CURSOR = Cursor(
    source="bluesky",
    position={"time_us": 1_725_911_162_329_308, "server": "wss://jetstream.example.org/subscribe"},
    written_at=datetime(2026, 3, 4, 9, 15, tzinfo=UTC),
)


@pytest.fixture
def settings() -> Iterator[Settings]:
    with EmbeddedBroker("live.") as broker:
        yield Settings(broker=f"kafka://{broker.bootstrap}", prefix="live.")


def test_golden_bytes_of_a_position_are_written_and_read_back() -> None:
    golden = wire_bytes("cursor-v1")
    assert encode(CURSOR) == golden
    assert decode(Cursor, golden) == CURSOR


async def test_the_last_position_of_each_source_is_read(settings: Settings) -> None:
    async with Delivery(settings) as delivery:
        for n in range(3):
            await delivery.write_position("bluesky", {"time_us": n})
        await delivery.write_position("rss/0123", {"etag": "a"})
    assert await read_positions(settings) == {"bluesky": {"time_us": 2}, "rss/0123": {"etag": "a"}}


async def test_a_position_that_was_deleted_or_is_not_readable_counts_as_none(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    records = [(b"a", encode(CURSOR)), (b"a", b"{}"), (b"b", encode(CURSOR))]
    await asyncio.to_thread(produce, settings.bootstrap[0], f"live.{CURSORS.name}", records)
    assert await read_positions(settings) == {"b": CURSOR.position}
    assert "its source starts anew" in caplog.text


async def test_a_record_that_the_producer_did_not_take_while_the_broker_was_away_is_sent_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Delivery(settings) as delivery:
        send, refusals = delivery._producer.send, [KafkaTimeoutError(), KafkaTimeoutError()]

        async def full_at_first(*arguments: Any, **named: Any) -> Any:
            if refusals:
                raise refusals.pop()
            return await send(*arguments, **named)

        monkeypatch.setattr(delivery._producer, "send", full_at_first)
        await delivery.write_position("bluesky", {"time_us": 1})
    assert await read_positions(settings) == {"bluesky": {"time_us": 1}}


async def test_waiting_for_a_send_does_not_cancel_it_and_its_error_is_raised_at_the_next_one() -> None:
    send: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(confirmed([send]))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not send.cancelled()
    window, loop = Window(limit=2), asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()
    await window.add(failed)
    failed.set_exception(ConnectionError("refused"))
    with pytest.raises(ConnectionError):
        await window.add(loop.create_future())
