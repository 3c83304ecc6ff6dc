from __future__ import annotations

import asyncio
import tracemalloc
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import TopicPartition
from faust.transport.drivers.aiokafka import Consumer
from faust.types import TP, ConsumerMessage
from mode.utils.queues import FlowControlEvent

from streams.app.consumer import CommittedConsumer
from streams.app.record_queue import HIGH, LOW, RecordQueue

SIZE = 20


class App:
    """What the queue uses of a Faust app: its flow control, its generation, and a consumer."""

    def __init__(self) -> None:
        self.flow_control = FlowControlEvent(initially_suspended=False)
        self.consumer_generation_id = 3
        self.consumer = self
        self.monitor = self
        self.stream_inbound_time: dict[TP, float] = {}
        self.unacked: set[Any] = set()
        self.full: set[TP] = set()

    def on_buffer_full(self, partition: TP) -> None:
        assert isinstance(partition, TP)
        self.full.add(partition)

    def on_buffer_drop(self, partition: TP) -> None:
        assert isinstance(partition, TP)
        self.full.remove(partition)


class Door:
    """Admits when it is open; `inside` counts who has entered and not left."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.inside = 0

    async def enter(self) -> None:
        await self.open.wait()
        self.inside = 1

    def leave(self) -> None:
        self.inside = 0


def message(offset: int, generation: int = 3, partition: int = 0) -> ConsumerMessage:
    """A message as Faust makes it of one of aiokafka."""
    return ConsumerMessage(
        "posts", partition, offset, 0.0, 0, {}, b"k", b"v", None,
        tp=TopicPartition("posts", partition), generation_id=generation,
    )  # fmt: skip


def queue(app: App) -> RecordQueue:
    return RecordQueue(app, SIZE)


async def taken(records: RecordQueue, size: int, wait: float = 0.02, door: Door | None = None) -> list[int]:
    """The offsets of the next batch."""
    batches = records.batches(size, wait, door or Door())
    return [m.offset for m in await asyncio.wait_for(anext(batches), 120)]


async def test_a_batch_has_what_is_there_up_to_its_size_in_order() -> None:
    app = App()
    records = queue(app)
    assert all(records.offer(message(i)) for i in range(12))
    assert await taken(records, 8) == list(range(8))
    assert {m.offset for m in app.unacked} == set(range(8)), "only what is taken delays a rebalance"
    assert await taken(records, 8) == [8, 9, 10, 11]


async def test_a_record_waits_no_longer_for_others_than_it_may_and_none_is_no_batch() -> None:
    records = queue(App())
    batch = asyncio.create_task(taken(records, 8, 0.2))
    await asyncio.sleep(0.01)
    records.offer(message(0))
    await asyncio.sleep(0.01)
    records.offer(message(1))
    assert not batch.done(), "the second one came in time"
    assert await batch == [0, 1]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(queue(App()).batches(8, 0.01, Door())), 0.1)


async def test_a_batch_has_all_that_came_until_it_was_admitted() -> None:
    app, door = App(), Door()
    records = queue(app)
    door.open.clear()
    records.offer(message(0))
    batch = asyncio.create_task(taken(records, 8, 0.01, door))
    await asyncio.sleep(0.05)
    assert not app.unacked, "what is not taken delays no rebalance"
    records.offer(message(1))
    door.open.set()
    assert await batch == [0, 1]
    assert door.inside == 1


async def test_a_place_is_given_back_when_a_rebalance_empties_the_queue_and_after_a_batch() -> None:
    door = Door()
    records = queue(App())
    door.open.clear()
    records.offer(message(0))
    batches = records.batches(8, 0.01, door)
    batch = asyncio.ensure_future(anext(batches))
    await asyncio.sleep(0.03)
    records.clear()
    door.open.set()
    await asyncio.sleep(0.01)
    assert (door.inside, batch.done()) == (0, False)
    records.offer(message(1))
    assert [m.offset for m in await asyncio.wait_for(batch, 120)] == [1]
    assert door.inside == 1
    late = asyncio.ensure_future(anext(batches))
    await asyncio.sleep(0.01)
    assert door.inside == 0
    late.cancel()


async def test_a_full_partition_is_not_fetched_until_there_is_room() -> None:
    app = App()
    records = queue(app)
    for i in range(int(HIGH * SIZE) - 1):
        assert records.offer(message(i))
    assert app.full == set()
    while records.offer(message(99, partition=1)):
        assert app.full == {TP("posts", 1)}
    assert len(records) == SIZE
    late = asyncio.create_task(records.put(message(100)))
    await asyncio.sleep(0.01)
    assert not late.done()
    await taken(records, int((1 - LOW) * SIZE) - 1)
    assert app.full == {TP("posts", 1)}
    await asyncio.wait_for(late, 120)
    assert len(records) == LOW * SIZE + 2
    await taken(records, 2)
    assert app.full == set()


async def test_a_record_that_was_fetched_before_a_rebalance_is_not_given_out() -> None:
    app = App()
    records = queue(app)
    records.offer(message(0, generation=2))
    records.offer(message(1))
    assert await taken(records, 8) == [1]
    assert {m.offset for m in app.unacked} == {1}


async def test_a_rebalance_empties_the_queue_and_takes_nothing_until_it_has_ended() -> None:
    app = App()
    records = queue(app)
    assert all(records.offer(message(i)) for i in range(SIZE))
    waiting = asyncio.create_task(records.put(message(SIZE)))
    await asyncio.sleep(0.01)
    app.flow_control.suspend()
    app.flow_control.clear()
    assert len(records) == 0
    assert not records.offer(message(50))
    await asyncio.sleep(0.01)
    assert not waiting.done(), "Faust cancels it"
    waiting.cancel()
    app.flow_control.resume()
    assert records.offer(message(7))
    assert await taken(records, 8) == [7]
    assert app.unacked and {m.offset for m in app.unacked} == {7}


@pytest.mark.parametrize(
    ("read", "offset", "left"),
    [(6, 7, False), (7, 7, False), (None, 7, True), (5, 7, True)],
    ids=["the next", "the first after the committed", "the first", "after a gap"],
)
async def test_faust_delivers_what_does_not_follow_the_record_before(
    monkeypatch: pytest.MonkeyPatch, read: int | None, offset: int, left: bool
) -> None:
    async def fetched(self: Any, seconds: float) -> AsyncIterator[Any]:
        yield TP("posts", 0), message(offset)

    monkeypatch.setattr(Consumer, "getmany", fetched)
    consumer: Any = CommittedConsumer.__new__(CommittedConsumer)
    consumer._read_offset, consumer._records = {TP("posts", 0): read}, queue(App())
    consumer._committed_offset = {TP("posts", 0): None}
    found = [m.offset async for _, m in consumer.getmany(1.0)]
    assert (found, len(consumer._records)) == (([offset], 0) if left else ([], 1))
    assert consumer._read_offset[TP("posts", 0)] == (read if left else offset)


async def test_acknowledgements_behind_missing_offsets_are_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    tp, offsets = TP("posts", 0), [0, 4, 5, 9, 500_000]

    async def fetched(self: Any, seconds: float) -> AsyncIterator[Any]:
        for offset in offsets:
            yield tp, message(offset)

    monkeypatch.setattr(Consumer, "getmany", fetched)
    consumer: Any = CommittedConsumer.__new__(CommittedConsumer)
    consumer._read_offset, consumer._records = {tp: None}, queue(App())
    consumer._gap = defaultdict(dict)
    consumer._acked, consumer._acked_index, consumer._committed_offset = {tp: []}, {tp: set()}, {tp: None}
    async for _, left in consumer.getmany(1.0):
        # As Faust does with what it must deliver.
        read = consumer._read_offset[tp]
        if read and left.offset - read > 1:
            await consumer._add_gap(tp, read + 1, left.offset)
        consumer._read_offset[tp] = left.offset
    committed = []
    tracemalloc.start()
    for offset in offsets:
        consumer._acked[tp].append(offset)
        consumer._committed_offset[tp] = consumer._new_offset(tp) or consumer._committed_offset[tp]
        committed.append(consumer._committed_offset[tp])
    assert committed == [1, 5, 6, 10, 500_001]
    assert tracemalloc.get_traced_memory()[1] < 1 << 20, "not a number for each missing offset"
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("committed", "gaps", "acked", "new"),
    [
        (None, {}, [7, 8], 9),
        (5, {}, [5, 6, 8], 7),
        (5, {}, [6], 7),
        (5, {}, [7], None),
        (5, {9: 7}, [6, 9], 10),
        (5, {9: 6}, [9], 10),
        (5, {9: 7}, [9], None),
        (5, {9: 8}, [5, 6, 9], 7),
        (5, {}, [], None),
    ],
)
def test_no_record_is_committed_before_those_in_front_of_it(
    committed: int | None, gaps: dict[int, int], acked: list[int], new: int | None
) -> None:
    tp = TP("posts", 0)
    consumer: Any = CommittedConsumer.__new__(CommittedConsumer)
    consumer._committed_offset, consumer._gap = {tp: committed}, {tp: gaps}
    consumer._acked, consumer._acked_index = {tp: list(acked)}, {tp: set(acked)}
    assert consumer._new_offset(tp) == new
    assert consumer._acked[tp] == [offset for offset in acked if new is None or offset >= new]
    assert consumer._acked_index[tp] == set(consumer._acked[tp])
