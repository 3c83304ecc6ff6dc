"""A topic of one partition that a few processes write to and read to its end: all of them see what each has
written in the same order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiokafka import TopicPartition

from streams.broker.consumer import kafka_consumer, kafka_producer
from streams.broker.ranges import read_between
from streams.broker.topic_ids import TopicId, topic_ids
from streams.codec import encode
from streams.settings import Settings
from streams.topics import Topic, TopicsError, broker_name, require
from streams.uninterrupted import uninterrupted

#: Seconds in which the broker delivers what it has confirmed.
DELIVERY_SECONDS = 30.0
#: Seconds for its answer about the topic's ends, for which somebody at a browser waits, and for the end of a
#: client: one without a broker would wait for ever for what it has not sent.
ANSWER_SECONDS, STOP_SECONDS = 10.0, 5.0
#: Seconds after a missing answer in which nobody waits for another: not those who waited for their turn.
SILENT_SECONDS = 1.0


class Tail:
    """The topic from its beginning; one task at a time may use it."""

    def __init__(self, settings: Settings, topic: Topic[Any]) -> None:
        self._settings = settings
        self._topic = topic
        self._partition = TopicPartition(broker_name(settings, topic.name), 0)
        self._producer: Any = None
        self._consumer: Any = None
        self._id: TopicId | None = None
        self._next = 0
        self._unread: list[Any] = []
        self._silent_until = 0.0

    async def start(self) -> None:
        """Connects; after an error nothing stays open. Raises TopicsError where the broker lacks it."""
        await require(self._settings, (self._topic,))
        self._consumer = kafka_consumer(self._settings, group_id=None, enable_auto_commit=False)
        self._producer = kafka_producer(self._settings)
        try:
            await uninterrupted(self._consumer.start())
            await uninterrupted(self._producer.start())
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """What the broker has not confirmed within STOP_SECONDS is given up: nobody was told that it was
        saved.
        """
        for client in (self._producer, self._consumer):
            if client is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(STOP_SECONDS):
                        await uninterrupted(client.stop())

    async def read(self, past: int = -1) -> list[Any]:
        """The messages that this has not read yet, up to the present end and at least past an offset that the
        broker has confirmed. Raises TopicsError where it does not deliver them, and KafkaError. What was read
        by a call that failed, or was cancelled with its request, the next one gives.
        """
        await self._read()
        end = time.monotonic() + DELIVERY_SECONDS
        while self._next <= past:
            if time.monotonic() > end:
                raise TopicsError(f"the broker does not deliver what it has confirmed on {self._topic.name}")
            await asyncio.sleep(0.01)
            await self._read()
        found, self._unread = self._unread, []
        return found

    async def _read(self) -> None:
        async with self._answered(ANSWER_SECONDS):
            first = (await self._consumer.beginning_offsets([self._partition]))[self._partition]
            end = (await self._consumer.end_offsets([self._partition]))[self._partition]
        start, found = max(first, self._next), []
        async for messages in read_between(self._consumer, {self._partition: start}, {self._partition: end}):
            found += messages
        # After the read: the places of one topic are not those of another one of its name.
        await self._check_id()
        self._next = max(end, self._next)
        self._unread += found

    async def _check_id(self) -> None:
        """Raises TopicsError where the topic is not the one that was read first."""
        name = self._partition.topic
        async with self._answered(ANSWER_SECONDS):
            found = (await topic_ids(self._consumer._client, [name])).get(name)
        if found is None:
            raise TopicsError(f"the broker does not have {name} any more")
        if self._id is not None and found.is_other(self._id):
            raise TopicsError(f"{name} was created again: this process has read another topic")
        self._id = self._id or found

    async def send(self, key: str, record: Any) -> int:
        """Writes a record and waits until the broker has it; gives its offset. Raises TopicsError and
        KafkaError; then the broker may have it all the same, or get it later.
        """
        async with self._answered(DELIVERY_SECONDS):
            sent = await self._producer.send_and_wait(
                self._partition.topic, encode(record), key=key.encode(), partition=0
            )
        return int(sent.offset)

    @asynccontextmanager
    async def _answered(self, seconds: float) -> AsyncIterator[None]:
        """Raises TopicsError where the block takes longer."""
        silent = TopicsError(f"the broker does not answer about {self._topic.name}")
        if time.monotonic() < self._silent_until:
            raise silent
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            self._silent_until = time.monotonic() + SILENT_SECONDS
            raise silent from None
