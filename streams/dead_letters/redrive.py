"""Sends dead letters back to the topic they died in, each as often as is allowed and no more than once a run.

What was sent is remembered on the broker, as the offsets of one consumer group for each reason. A broker
forgets the offsets of an idle group (`offsets.retention.minutes`, seven days unless set), every run renews
them: set it to no less than dead letters are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, get_args

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streams.broker.ranges import Progress, read_between
from streams.dead_letters.headers import ATTEMPTS, Reason
from streams.settings import Settings
from streams.topics import CONSUMED, MAX_DEAD_MESSAGE, Topic, TopicsError, present, require

#: Letters without a reason, or with one that a later release gave.
OTHER = "other"
REASONS: tuple[str, ...] = (*get_args(Reason), OTHER)
#: Sends between two commits: what a crash repeats at the most.
CHUNK = 500
#: A longer number is none that a redrive wrote.
ATTEMPTS_DIGITS = 9
#: Bounds of what the record format adds to a message and to each of its headers.
MESSAGE_OVERHEAD = 128
HEADER_OVERHEAD = 10


@dataclass(frozen=True, slots=True)
class Redriven:
    """What became of the letters that a run looked at."""

    sent: int
    exhausted: int
    """Sent back as often as is allowed; they stay where they are."""
    skipped: int
    """Of another reason, or sent back by an earlier run."""
    too_large: int = 0
    """The broker would refuse them: too near to its limit to take one header more."""


async def redrive(  # noqa: PLR0913  what a person can ask for
    settings: Settings,
    dead_topic: str,
    *,
    reason: str | None,
    limit: int,
    max_attempts: int = 3,
    progress: Progress,
) -> Redriven:
    """Sends up to `limit` letters (0: all) of a reason (None: of every reason) that are there at the start.

    Every letter is sent at least once: a run that is killed repeats up to a chunk. Raises TopicsError for a
    topic that holds no dead letters, ValueError for an unknown reason.
    """
    topic = died_in(dead_topic)
    chosen = REASONS if reason is None else (reason,)
    if reason is not None and reason not in REASONS:
        raise ValueError(f"no reason {reason!r}; there are {', '.join(REASONS)}")
    await require(settings, (topic, topic.dead))
    have = await present(settings)
    partitions = [TopicPartition(dead_topic, p) for p in range(have[dead_topic])]
    async with AsyncExitStack() as stack:
        ledgers = {name: await _Ledger.open(settings, name, partitions, stack) for name in chosen}
        reader = AIOKafkaConsumer(**settings.client(), group_id=None, auto_offset_reset="earliest")
        producer = AIOKafkaProducer(
            **settings.client(),
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
            max_request_size=2 * MAX_DEAD_MESSAGE,
        )
        for client in (reader, producer):
            await client.start()
            stack.push_async_callback(client.stop)
        run = _Run(topic, ledgers, producer, limit, max_attempts)
        await run.over(reader, partitions, progress)
    return Redriven(run.sent, run.exhausted, run.skipped, run.too_large)


def died_in(dead_topic: str) -> Topic[Any]:
    """The topic that a topic of dead letters belongs to; raises TopicsError for any other name."""
    for topic in CONSUMED:
        if topic.dead.name == dead_topic:
            return topic
    raise TopicsError(
        f"{dead_topic!r} holds no dead letters; these do: {', '.join(t.dead.name for t in CONSUMED)}"
    )


def reason_of(headers: Sequence[tuple[str, bytes]]) -> str:
    """Why a letter died, as far as this release knows the reason; `other` where it does not."""
    reason = (dict(headers).get("pv-reason") or b"").decode(errors="replace")
    return reason if reason in REASONS else OTHER


def attempts_of(headers: Sequence[tuple[str, bytes]]) -> int:
    """How often the letter was sent back before; 0 where its header is no number."""
    text = dict(headers).get(ATTEMPTS) or b""
    return int(text) if text.isdigit() and len(text) <= ATTEMPTS_DIGITS else 0


def headers_back(headers: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The headers that the record came with, and one attempt more."""
    own = [(name, value) for name, value in headers if not name.startswith("pv-")]
    return [*own, (ATTEMPTS, str(attempts_of(headers) + 1).encode())]


class _Ledger:
    """What was redriven for one reason: all letters before the group's offset in each partition."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.offsets: dict[Any, int] = {}

    @classmethod
    async def open(
        cls, settings: Settings, reason: str, partitions: Sequence[Any], stack: AsyncExitStack
    ) -> _Ledger:
        consumer = AIOKafkaConsumer(
            **settings.client(), group_id=f"pv-redrive.{reason}", enable_auto_commit=False
        )
        await consumer.start()
        stack.push_async_callback(consumer.stop)
        consumer.assign(partitions)
        consumer.pause(*partitions)  # or it would read, too
        ledger = cls(consumer)
        ledger.offsets = {tp: await consumer.committed(tp) or 0 for tp in partitions}
        return ledger

    async def commit(self, passed: Mapping[Any, int]) -> None:
        """Never backwards: a run over every reason may be behind one over this reason."""
        self.offsets |= {tp: max(offset, self.offsets[tp]) for tp, offset in passed.items()}
        await self._consumer.commit(dict(self.offsets))


class _Run:
    """One run over a topic of dead letters, and its counts."""

    def __init__(
        self, topic: Topic[Any], ledgers: Mapping[str, _Ledger], producer: Any, limit: int, max_attempts: int
    ) -> None:
        self.sent = self.exhausted = self.skipped = self.too_large = 0
        self._topic = topic
        self._ledgers = ledgers
        self._producer = producer
        self._limit = limit
        self._max_attempts = max_attempts

    async def over(self, reader: Any, partitions: Sequence[Any], progress: Progress) -> None:
        """From the first letter that may be waiting to the last that is there now; a letter that comes back
        meanwhile is left for the next run.
        """
        first, stops = await reader.beginning_offsets(partitions), await reader.end_offsets(partitions)
        done = {tp: min(ledger.offsets[tp] for ledger in self._ledgers.values()) for tp in partitions}
        starts = {tp: max(first[tp], done[tp]) for tp in partitions}
        total = sum(max(0, stops[tp] - starts[tp]) for tp in partitions)
        progress(0, total)
        async for letters in read_between(reader, starts, stops, CHUNK):
            passed = await self._send_back(letters)
            await self._commit(passed)
            progress(min(total, self.sent + self.exhausted + self.skipped + self.too_large), total)
            if self._is_full():
                return
        await self._commit(stops)
        progress(total, total)

    async def _send_back(self, letters: Sequence[Any]) -> dict[Any, int]:
        """Returns, once everything sent is confirmed, the offset after the last letter of each partition."""
        deliveries, passed = [], {}
        for letter in letters:
            if self._is_full():
                break
            if self._is_due(letter):
                headers = headers_back(letter.headers)
                deliveries.append(
                    await self._producer.send(
                        self._topic.name, key=letter.key, value=letter.value, headers=headers
                    )
                )
                self.sent += 1
            passed[TopicPartition(letter.topic, letter.partition)] = letter.offset + 1
        await asyncio.gather(*deliveries)
        return passed

    def _is_due(self, letter: Any) -> bool:
        """Whether to send it; counts it where not."""
        ledger = self._ledgers.get(reason_of(letter.headers))
        if ledger is None or letter.offset < ledger.offsets[TopicPartition(letter.topic, letter.partition)]:
            self.skipped += 1
        elif attempts_of(letter.headers) >= self._max_attempts:
            self.exhausted += 1
        elif _size(letter) > self._topic.max_message_bytes:
            self.too_large += 1
        else:
            return True
        return False

    def _is_full(self) -> bool:
        return 0 < self._limit <= self.sent

    async def _commit(self, passed: Mapping[Any, int]) -> None:
        for ledger in self._ledgers.values():
            await ledger.commit(passed)


def _size(letter: Any) -> int:
    """Bytes of the message at the most, as it would be sent back."""
    headers = headers_back(letter.headers)
    extra = sum(len(name.encode()) + len(value or b"") + HEADER_OVERHEAD for name, value in headers)
    return MESSAGE_OVERHEAD + len(letter.key or b"") + len(letter.value or b"") + extra
