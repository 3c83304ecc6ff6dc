"""Faust's consumer for the stages: reads committed records and puts them into the queue of the stage."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, cast

from aiokafka import TopicPartition
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Producer

from streams.app.record_queue import RecordQueue
from streams.broker import tolerant_headers
from streams.broker.consumer import ISOLATION, retry_unknown_nodes, whole_stop
from streams.broker.membership import Membership
from streams.broker.patience import wait_at_start

log = logging.getLogger(__name__)
#: Of the classes that are services of Faust, whose starts and stops are Faust's messages and not ours.
FAUST_LOG = logging.getLogger("faust")
#: Longest time in milliseconds that the broker holds a fetch request while there are no records. A Kafka
#: answers as soon as there is one; the embedded broker waits for the full time, so this is the longest delay
#: before each stage. Faust has no setting for it; its own value is 1,500.
FETCH_WAIT_MS = 100
#: Seconds between two looks whether all of a partition is processed.
POLL_SECONDS = 0.05


class _CommittedConsumerThread(AIOKafkaConsumerThread):
    """Faust's consumer thread, reading as `streams.broker.consumer` does: Faust has no setting for it."""

    logger = FAUST_LOG
    membership: Membership

    async def on_start(self) -> None:
        await super().on_start()
        coordinator = self._ensure_consumer()._coordinator
        self.membership = Membership(coordinator)
        coordinator._coordination_task.add_done_callback(self._coordination_ended)
        self._push = coordinator._push_error_to_user
        coordinator._push_error_to_user = self._membership_failed

    def verify_event_path(self, now: float, tp: Any) -> None:
        """Faust looks at times whether a partition moves on, and logs it. A partition without a position,
        around a rebalance, is passed over: Faust asks aiokafka for that, which raises and ends the worker.
        """
        subscription = self._ensure_consumer()._subscription.subscription
        assignment = subscription.assignment if subscription is not None else None
        state = assignment.state_value(TopicPartition(*tp)) if assignment is not None else None
        if state is not None and state.has_valid_position:
            super().verify_event_path(now, tp)

    async def on_thread_stop(self) -> None:
        # Otherwise the thread would end without saying so, and the stop of the app would wait for it.
        await whole_stop(self._consumer, super().on_thread_stop())

    def _create_worker_consumer(self, transport: Any) -> Any:
        tolerant_headers.install()
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = ISOLATION
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        retry_unknown_nodes(consumer._client)
        wait_at_start(consumer._client)
        return consumer

    async def seek_to_committed(self) -> Mapping[Any, Any]:
        """The committed offset of each assigned partition, where reading begins again: at the beginning where
        there is none (None). aiokafka leaves such a partition where it is: what Faust has fetched and
        dropped, as it does around a rebalance, would not be read again.
        """
        return cast(Mapping[Any, Any], await self.call_thread(self._seek_to_committed))

    async def _seek_to_committed(self) -> Mapping[Any, int | None]:
        consumer = self._ensure_consumer()
        partitions = consumer.assignment()
        if not partitions:
            return {}
        committed: Mapping[Any, int | None] = await consumer.seek_to_committed(*partitions)
        if begin := [partition for partition, offset in committed.items() if not offset]:
            await consumer.seek_to_beginning(*begin)
        return committed

    def _coordination_ended(self, task: asyncio.Task[None]) -> None:
        """Ends the worker after an error in the task that keeps the membership. While the consumer has no
        partitions nothing else would see it, and it would wait for them without end.
        """
        if not task.cancelled() and (error := task.exception()) is not None:
            self.add_future(self.crash(error))

    def _membership_failed(self, error: Exception) -> Awaitable[Any]:
        """Ends the worker after an error of the group that aiokafka leaves to its user, such as a missing
        right or a session that the broker refuses. aiokafka then waits until it is asked for the error, which
        Faust never does. While the consumer has no partitions nothing else would see it either.
        """
        self.add_future(self.crash(error))
        return cast(Awaitable[Any], self._push(error))


class PatientProducer(Producer):
    """Faust's producer, which also starts while no broker answers."""

    logger = FAUST_LOG

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        wait_at_start(producer.client)
        return producer


class CommittedConsumer(Consumer):
    """Puts fetched records directly into the queue `records` of its app while that has room. For each other
    record Faust starts four tasks, so that waiting for room can be cancelled.
    """

    logger = FAUST_LOG

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._records: RecordQueue = cast(Any, self.app).records
        self.callback = self._records.put
        self._gap: Any = defaultdict(dict)

    def _new_consumer_thread(self) -> Any:
        return _CommittedConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def highwater(self, tp: Any) -> int:
        """Faust calls it for each record, for sensors that are not used here."""
        return 0

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[Any, Any]]:  # noqa: ASYNC109
        """Partition and record of those that Faust must deliver itself: the queue is full, offsets before the
        record are missing, or a rebalance has stopped the flow. All others are in the queue already.

        Faust notes missing offsets, so that acknowledgements behind them are committed; but not those behind
        the first record of a partition, whose offset 0 it takes for none.
        """
        async for tp, message in super().getmany(timeout):
            if self._begins_again(tp, message.offset) and not await self._forget(tp, message.offset):
                return
            read = self._read_offset[tp]
            if read == 0 and message.offset > 1:
                await self._add_gap(tp, 1, message.offset)
            follows = read is not None and 0 <= message.offset - read <= 1
            if follows and self._records.offer(message):
                self._read_offset[tp] = message.offset
            else:
                yield tp, message

    def _begins_again(self, tp: Any, offset: int) -> bool:
        """Whether a record comes before others that were read: the topic was created again, or its end was
        lost with a broker. Faust would drop all of its records up to the offset that it had reached.
        """
        return offset < max(self._read_offset[tp] or 0, self._committed_offset[tp] or 0)

    async def _forget(self, tp: Any, offset: int) -> bool:
        """Forgets how far a partition was read, as soon as nothing of it is being processed or committed;
        False where a rebalance comes first, after which it is read again.
        """
        log.warning("%s/%d begins again at offset %d: it is read from there", tp.topic, tp.partition, offset)
        generation = self.app.consumer_generation_id
        while self._is_busy_with(tp):
            await asyncio.sleep(POLL_SECONDS)
            if not self.flow_active or self.app.consumer_generation_id != generation:
                return False
        for known in (self._read_offset, self._committed_offset, self._acked, self._acked_index, self._gap):
            known.pop(tp, None)
        return True

    def _is_busy_with(self, tp: Any) -> bool:
        return (
            self._records.holds(tp) or any(m.tp == tp for m in self.unacked) or self._commit_fut is not None
        )

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Notes that no record is from one offset to that before another, where one is. Faust would list each
        offset between them: millions where retention has removed what this group had not read.
        """
        self._gap[tp][offset_to] = offset_from

    def _new_offset(self, tp: Any) -> int | None:
        """The offset behind the acknowledged records that no unacknowledged one is before, and forgets them;
        None where there are none. As in Faust, one offset that holds no record may follow the committed one.
        """
        acked, gaps, committed = self._acked[tp], self._gap[tp], self._committed_offset[tp]
        acked.sort()
        last = committed or None
        done = 0
        for offset in acked:
            if last is not None and gaps.get(offset, offset) > last + 1:
                break
            last, done = offset, done + 1
        for offset in acked[:done]:
            gaps.pop(offset, None)
        self._acked_index[tp].difference_update(acked[:done])
        del acked[:done]
        return last + 1 if done and last is not None else None
