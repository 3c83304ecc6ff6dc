"""How a reloader reads the topic of announcements."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from streams import metrics
from streams.agents.pipeline import stage_named
from streams.codec import encode
from streams.records import Announcement, Inbound
from streams.rollout import reload
from streams.rollout.handle import Handle
from streams.rollout.reload import Reloader
from streams.settings import Settings
from tests.streams.polling import until
from tests.streams.rollout.reloading import HeldLoader, Store, announcement, new_handle, sent


class FakeTopic:
    """The topic of announcements; its consumers fail while `fail` is set."""

    def __init__(self) -> None:
        self.messages: list[Inbound] = []
        self.arrived = asyncio.Event()
        self.fail = False
        self.started = 0
        self.consumers: list[FakeConsumer] = []
        self.stopped = 0

    def put(self, announcement: Announcement, key: str | None = None) -> None:
        self.put_bytes((key or announcement.key).encode(), encode(announcement))

    def put_bytes(self, key: bytes, value: bytes | None) -> None:
        self.messages.append(sent(key, value, len(self.messages)))
        self.arrived.set()

    def consumer(self, settings: Settings, *topics: str, **options: Any) -> FakeConsumer:
        chosen = (topics, options["group_id"], options["auto_offset_reset"])
        assert chosen == (("releases",), None, "earliest")
        self.consumers.append(FakeConsumer(self))
        return self.consumers[-1]


class FakeConsumer:
    def __init__(self, topic: FakeTopic) -> None:
        self.topic = topic
        self.next_offset = 0

    async def start(self) -> None:
        self.topic.started += 1
        if self.topic.fail:
            raise ConnectionError("no broker")

    async def stop(self) -> None:
        self.topic.stopped += 1

    def subscription(self) -> set[str]:
        return {"releases"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0}

    async def end_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, len(self.topic.messages))

    async def position(self, partition: Any) -> int:
        return self.next_offset

    async def getmany(self, partition: Any, timeout_ms: int) -> Mapping[Any, list[Inbound]]:
        # One message at a time, so that the reader has to call again.
        messages = self.topic.messages[self.next_offset : self.next_offset + 1]
        self.next_offset += len(messages)
        return {partition: messages}

    def __aiter__(self) -> FakeConsumer:
        return self

    async def __anext__(self) -> Inbound:
        while self.next_offset >= len(self.topic.messages):
            self.topic.arrived.clear()
            await self.topic.arrived.wait()
            if self.topic.fail:
                raise ConnectionError("the broker closed the connection")
        self.next_offset += 1
        return self.topic.messages[self.next_offset - 1]


@pytest.fixture
async def topic(monkeypatch: pytest.MonkeyPatch) -> FakeTopic:
    fake = FakeTopic()
    monkeypatch.setattr("streams.rollout.announcements.kafka_consumer", fake.consumer)
    return fake


@asynccontextmanager
async def running_reloader(handle: Handle, store: Store) -> AsyncIterator[Reloader]:
    reloader = Reloader([stage_named("summarization")], {"summarization": handle}, store.settings)
    running = asyncio.create_task(reloader.run())
    try:
        yield reloader
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()


@pytest.mark.slow
async def test_announcements_are_read_from_the_first_on_and_again_after_an_error(
    topic: FakeTopic, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reload, "RETRY_SECONDS", 0.05)
    loader = HeldLoader()
    loader.may_load.set()
    monkeypatch.setattr(reload, "load_release", loader)
    one, two, three = store.sound
    topic.put(announcement(one))
    topic.put(announcement(two))
    handle = new_handle(store)
    with caplog.at_level(logging.WARNING):
        async with running_reloader(handle, store):
            # Of the announcements before the start only the last one is loaded.
            await until(lambda: handle.current.version == two)
            topic.put(announcement(three))
            await until(lambda: handle.current.version == three)
            topic.fail = True
            topic.arrived.set()
            await until(lambda: topic.started >= 3)
            assert "reading announcements failed, trying again: ConnectionError" in caplog.text
            topic.put(announcement(one))
            topic.fail = False
            await until(lambda: handle.current.version == one)
            assert loader.requested == [two, three, one]
    assert topic.stopped == topic.started


async def test_refused_announcements_count_once_and_change_nothing(topic: FakeTopic, store: Store) -> None:
    def refused() -> float:
        return metrics.REGISTRY.get_sample_value("pv_announcements_refused_total") or 0.0

    before = refused()
    topic.put_bytes(b"summarization", b"garbage")
    handle = new_handle(store)
    current = handle.current
    async with running_reloader(handle, store) as reloader:
        await until(lambda: topic.started == 1 and topic.consumers[0].next_offset == 1)
        assert refused() == before, "it may have been counted before a restart"
        topic.put_bytes(b"summarization", b"garbage")
        topic.put_bytes(b"\xff", None)
        topic.put(announcement("0" * 12, task="ner"))
        topic.put(announcement("0" * 12, task="ner"), key="summarization")
        topic.put(announcement(store.sound[0]))
        await until(lambda: handle.reloads == 1)
    assert refused() == before + 3
    assert handle.current.version == store.sound[0]
    assert handle.current is not current
    assert handle.refused is None
    assert sorted(reloader._announcements) == ["ner", "summarization"]
