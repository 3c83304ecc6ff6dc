"""Sends dead letters back to their source topic: each once a run, and up to a number of attempts.

Which letters were sent is stored on the broker, as the offsets of one consumer group for each reason. Every
run commits them again. A broker deletes the offsets of an idle group after `offsets.retention.minutes` (seven
days by default), so that setting must not be shorter than the retention of the dead letters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from aiokafka import TopicPartition

from streams.broker.consumer import kafka_consumer, kafka_producer, running_client
from streams.broker.deletions import Deletions, Place, read_deletions
from streams.broker.ranges import Progress, read_between, read_chunks
from streams.dead_letters.headers import ATTEMPTS, HEADER_OVERHEAD, TRUNCATED, Reason, attempts_of, place_of
from streams.dead_letters.redriven import SentOffsets
from streams.records import Headers
from streams.settings import Settings
from streams.topics import (
    CONSUMED,
    MAX_DEAD_MESSAGE,
    Topic,
    TopicsError,
    admin_client,
    broker_name,
    group_id,
    partition_counts,
    require,
)

#: Stands for a missing reason, or one that a later version of the software gave.
OTHER = "other"
REASONS: tuple[str, ...] = (*get_args(Reason), OTHER)
#: How often a letter is sent back where nothing else is asked for.
MAX_ATTEMPTS = 3
#: Letters between two commits; a crash repeats at most so many.
CHUNK = 500
#: Upper bound, in bytes, of what the record format adds to a message.
MESSAGE_OVERHEAD = 128


@dataclass(frozen=True, slots=True)
class Redriven:
    """The number of letters of a run, by outcome."""

    sent: int
    exhausted: int
    """Not sent: the number of attempts is used up."""
    skipped: int
    """Not sent: another reason, or sent back before; by this run too, as the letter of another stage."""
    too_large: int = 0
    """Not sent: the value was cut when the letter was written, or the message would exceed the limit of the
    topic.
    """
    deleted: int = 0
    """Not sent: a tombstone deletes the report, or the letter has no key by which one could."""
    outdated: int = 0
    """Not sent: the topic has a later version of the record, or has dropped what followed it, perhaps also a
    tombstone.
    """


async def redrive(  # noqa: PLR0913  the options of the command
    settings: Settings,
    dead_topic: str,
    *,
    reason: str | None,
    limit: int,
    max_attempts: int = MAX_ATTEMPTS,
    outdated: bool = False,
    progress: Progress,
) -> Redriven:
    """Sends back up to `limit` letters (0: all) with a reason (None: any) that are in the topic at the start.
    Letters of deleted reports are not sent, and without `outdated` none that a later version has replaced, or
    that are older than their topic. With it, or above MAX_ATTEMPTS, what earlier runs have left is sent too.

    Each is sent at least once: after a crash up to CHUNK letters are sent again. Raises TopicsError if
    `dead_topic` is not a dead-letter topic, and ValueError for an unknown reason.
    """
    topic = source_topic(dead_topic)
    chosen = REASONS if reason is None else (reason,)
    if reason is not None and reason not in REASONS:
        raise ValueError(f"no reason {reason!r}; the reasons are {', '.join(REASONS)}")
    await require(settings, (topic, topic.dead_letters))
    counts = await partition_counts(settings)
    partitions = [TopicPartition(broker_name(settings, dead_topic), p) for p in range(counts[dead_topic])]
    async with AsyncExitStack() as stack:
        sent = await _sent_offsets(settings, chosen, partitions, stack)
        reader = kafka_consumer(settings, group_id=None, auto_offset_reset="earliest")
        size = 2 * MAX_DEAD_MESSAGE
        producer = kafka_producer(settings, linger_ms=5, max_request_size=size)
        for client in (reader, producer):
            await stack.enter_async_context(running_client(client))
        run = _Run(topic, broker_name(settings, topic.name), sent, producer, limit, max_attempts)
        run.sends_outdated = outdated
        # Before the search for deletions, which may take minutes: it has no letter that comes meanwhile.
        stops = await reader.end_offsets(partitions)
        run.deletions = await _deletions(settings, topic)
        await run.send_all(reader, stops, progress, partial(run.deletions.read_on, settings, topic))
    return Redriven(run.sent, run.exhausted, run.skipped, run.too_large, run.deleted, run.outdated)


async def _sent_offsets(
    settings: Settings, reasons: Sequence[str], partitions: Sequence[Any], stack: AsyncExitStack
) -> dict[str, SentOffsets]:
    """Of each reason what was sent before, as long as `stack` is open."""
    admin = await stack.enter_async_context(admin_client(settings))
    groups = {reason: redrive_group(settings, reason) for reason in reasons}
    return {
        reason: await SentOffsets.open(settings, admin, group, partitions, stack)
        for reason, group in groups.items()
    }


async def _deletions(settings: Settings, topic: Topic[Any]) -> Deletions:
    """What the source topic says about the reports of the dead letters."""
    reports = []
    async for letters in read_chunks(settings, topic.dead_letters, "beginning", "end", lambda n, total: None):
        for letter in letters:
            place = place_of(letter.headers)
            if letter.key is not None and place is not None:
                reports.append((letter.key, place))
    return await read_deletions(settings, topic, reports)


def source_topic(dead_topic: str) -> Topic[Any]:
    """The topic that a dead-letter topic belongs to; raises TopicsError for any other name."""
    for topic in CONSUMED:
        if topic.dead_letters.name == dead_topic:
            return topic
    names = ", ".join(t.dead_letters.name for t in CONSUMED)
    raise TopicsError(f"{dead_topic!r} is not a dead-letter topic; those are {names}")


def redrive_group(settings: Settings, reason: str) -> str:
    """The consumer group whose offsets say up to where letters with this reason were sent back."""
    return group_id(settings, f"redrive.{reason}")


def reason_of(headers: Headers) -> str:
    """The reason in a letter's headers; `other` if it is missing or unknown."""
    reason = (dict(headers).get("pv-reason") or b"").decode(errors="replace")
    return reason if reason in REASONS else OTHER


def redrive_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """The headers that the record had before it became a dead letter, and the number of attempts plus one."""
    own = [(name, value) for name, value in headers if not name.startswith("pv-")]
    return [*own, (ATTEMPTS, str(attempts_of(headers) + 1).encode())]


class _Run:
    """One run over a dead-letter topic, and its counts."""

    def __init__(  # noqa: PLR0913, PLR0917  the options of the command, and where to send
        self,
        topic: Topic[Any],
        target: str,
        sent_offsets: Mapping[str, SentOffsets],
        producer: Any,
        limit: int,
        max_attempts: int,
    ) -> None:
        self.sent = self.exhausted = self.skipped = self.too_large = self.deleted = self.outdated = 0
        self.deletions = Deletions((), {})
        self.sends_outdated = False
        self._topic = topic
        self._target = target
        """The name of the topic on the broker."""
        self._sent_offsets = sent_offsets
        self._producer = producer
        self._limit = limit
        self._max_attempts = max_attempts
        self._stages: dict[Place, bytes | None] = {}
        """Of each record that was sent, by its place, the stage of the letter."""

    async def send_all(
        self,
        reader: Any,
        stops: Mapping[Any, int],
        progress: Progress,
        read_deletions: Callable[[], Awaitable[None]],
    ) -> None:
        """Reads from the first letter that may not have been sent to `stops`; later letters are for the next
        run. `read_deletions`: looks before each chunk for what was deleted or sent meanwhile.
        """
        partitions = list(stops)
        first, left = await reader.beginning_offsets(partitions), self._takes_left
        for one in self._sent_offsets.values():
            one.drop_expired(first)
        sent = {
            tp: min(s.first(tp, with_left=left) for s in self._sent_offsets.values()) for tp in partitions
        }
        starts = {tp: max(first[tp], sent[tp]) for tp in partitions}
        total = sum(max(0, stops[tp] - starts[tp]) for tp in partitions)
        progress(0, total)
        async for letters in read_between(reader, starts, stops, CHUNK):
            await read_deletions()
            offsets = await self._send_back(letters)
            await self._commit(offsets)
            progress(min(total, self._seen()), total)
            if self._is_full():
                return
        await self._commit(stops)
        progress(total, total)

    async def _send_back(self, letters: Sequence[Any]) -> dict[Any, int]:
        """Sends the letters that are due and waits for their confirmation; returns for each partition the
        offset after its last letter.
        """
        deliveries, offsets = [], {}
        for letter in letters:
            if self._is_full():
                break
            if self._is_due(letter):
                headers = redrive_headers(letter.headers)
                delivery = await self._producer.send(
                    self._target, key=letter.key, value=letter.value, headers=headers
                )
                deliveries.append(delivery)
                self.sent += 1
            offsets[TopicPartition(letter.topic, letter.partition)] = letter.offset + 1
        await asyncio.gather(*deliveries)
        return offsets

    def _is_due(self, letter: Any) -> bool:
        """Whether to send the letter back; otherwise it is counted, and left for a run with other options."""
        tp = TopicPartition(letter.topic, letter.partition)
        sent = self._sent_offsets.get(reason_of(letter.headers))
        if sent is None or not sent.waits(tp, letter.offset, with_left=self._takes_left):
            self.skipped += 1
        elif attempts_of(letter.headers) >= self._max_attempts:
            sent.leave(tp, letter.offset)
            self.exhausted += 1
        elif TRUNCATED in dict(letter.headers) or _size(letter) > self._topic.max_message_bytes:
            self.too_large += 1
        elif self._is_deleted(letter):
            self.deleted += 1
        elif self._is_outdated(letter):
            sent.leave(tp, letter.offset)
            self.outdated += 1
        else:
            sent.take(tp, letter.offset)
            if not self._is_of_another_stage(letter):
                return True
            self.skipped += 1
        return False

    def _is_of_another_stage(self, letter: Any) -> bool:
        """Whether this run has sent the same record, which two stages of a topic could not process. They read
        what is sent back both, so twice as many letters would come back each time.
        """
        place, stage = place_of(letter.headers), dict(letter.headers).get("pv-stage")
        return place is not None and self._stages.setdefault(place, stage) != stage

    @property
    def _takes_left(self) -> bool:
        """Whether this run may send what runs without these options have left."""
        return self.sends_outdated or self._max_attempts > MAX_ATTEMPTS

    def _is_deleted(self, letter: Any) -> bool:
        place = place_of(letter.headers)
        if letter.key is None or place is None:
            return letter.key is None and letter.value is not None
        return self.deletions.follow(letter.key, place)

    def _is_outdated(self, letter: Any) -> bool:
        place = place_of(letter.headers)
        if self.sends_outdated or place is None:
            return False
        # Behind a later version, which a stage has or will, the letter would pass for a still later one.
        return self.deletions.replace(letter.key, place) or self.deletions.are_unknown(place)

    def _seen(self) -> int:
        """The letters that were read."""
        return self.sent + self.exhausted + self.skipped + self.too_large + self.deleted + self.outdated

    def _is_full(self) -> bool:
        return 0 < self._limit <= self.sent

    async def _commit(self, offsets: Mapping[Any, int]) -> None:
        for sent in self._sent_offsets.values():
            await sent.commit(offsets)


def _size(letter: Any) -> int:
    """Upper bound of the size in bytes of the message as it would be sent back."""
    headers = redrive_headers(letter.headers)
    extra = sum(len(name.encode()) + len(value or b"") + HEADER_OVERHEAD for name, value in headers)
    return MESSAGE_OVERHEAD + len(letter.key or b"") + len(letter.value or b"") + extra
