"""The topic `reviews`: read whole at the start, then written by one process."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition

from streams.broker.consumer import kafka_consumer
from streams.broker.ranges import read_between
from streams.codec import BadRecord, decode, encode
from streams.records import SECOND, Review, ReviewedEvent
from streams.reviews.agreement import Readings
from streams.reviews.chain import BrokenChain, linked, verify
from streams.reviews.head import KeptHead
from streams.settings import Settings
from streams.topics import REVIEWS, broker_name, require

log = logging.getLogger(__name__)
#: Report, start and end of the event, fingerprint of the text.
Place = tuple[str, int, int, str]


def place_of(review: Review) -> Place:
    return review.report_id, review.start, review.end, review.fingerprint


class ReviewLog:
    """The decisions so far, and the present state of each event that has one. Run one process that writes:
    what another one wrote is seen before each decision, but two at the same moment would fork the chain.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._partition = TopicPartition(broker_name(settings, REVIEWS.name), 0)
        self._producer: Any = None
        self._consumer: Any = None
        self._next = 0
        self._lock = asyncio.Lock()
        self._head = KeptHead(settings)
        self.reviews: list[Review] = []
        self.current: dict[Place, ReviewedEvent] = {}
        self.readings: dict[Place, Readings] = {}

    async def start(self) -> None:
        """Reads the topic. Raises TopicsError, and BrokenChain where it is not whole or was cut off."""
        await require(self._settings, (REVIEWS,))
        self._consumer = kafka_consumer(self._settings, group_id=None, enable_auto_commit=False)
        self._producer = AIOKafkaProducer(**self._settings.client(), acks="all", enable_idempotence=True)
        await self._consumer.start()
        await self._producer.start()
        await self._catch_up()
        self._head.check(self.reviews)

    async def stop(self) -> None:
        for client in (self._producer, self._consumer):
            if client is not None:
                await client.stop()

    async def append(self, review: Review) -> Review:
        """Writes a decision as the next of the chain and waits until the broker has it."""
        async with self._lock:
            await self._catch_up()
            placed = linked(review, self.reviews[-1] if self.reviews else None)
            sent = await self._producer.send_and_wait(
                self._partition.topic, encode(placed), key=review.report_id.encode(), partition=0
            )
            self._take(placed)
            self._next = sent.offset + 1
            await asyncio.to_thread(self._keep_head)
        return placed

    def _keep_head(self) -> None:
        """A failure is logged: the broker has the decision."""
        try:
            self._head.write(self.reviews)
        except OSError as error:
            log.warning("the head of the decisions is not kept: %s", error)

    async def _catch_up(self) -> None:
        """Reads what another process has written."""
        end = (await self._consumer.end_offsets([self._partition]))[self._partition]
        if end <= self._next:
            return
        found: list[Review] = []
        async for messages in read_between(
            self._consumer, {self._partition: self._next}, {self._partition: end}
        ):
            for message in messages:
                try:
                    found.append(decode(Review, message.value))
                except BadRecord as error:
                    raise BrokenChain(f"reviews/0@{message.offset}: {error}") from None
        verify(found, self.reviews[-1] if self.reviews else None)
        for review in found:
            if not self.reviews or review != self.reviews[-1]:
                self._take(review)
        self._next = end

    def _take(self, review: Review) -> None:
        self.reviews.append(review)
        place = place_of(review)
        self.readings.setdefault(place, Readings(review.before)).take(review)
        if review.reading != SECOND:
            self.current[place] = review.after
