"""The queue of fetched records between Faust's consumer and a stage.

It replaces Faust's streams, which pass each record through tasks, coroutines and sensors. These cost more
time than decoding, stamping, encoding and sending it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Protocol

from faust.types import TP

#: Shares of the size. A partition whose record fills the queue to the first is paused; it is resumed when the
#: queue has fallen to the second.
HIGH, LOW = 0.8, 0.4


class Admission(Protocol):
    """Limits how many batches are in inference or ready for it."""

    async def enter(self) -> None:
        """Waits for a place for the next batch."""

    def leave(self) -> None:
        """Releases the place if it is still held."""


class RecordQueue:
    """A bounded queue of Faust's messages, which Faust empties on a rebalance.

    A message that leaves the queue is unacknowledged: a rebalance and a stop wait for its acknowledgement. A
    message that was fetched before a rebalance is discarded.
    """

    def __init__(self, app: Any, size: int) -> None:
        self.size = size
        self._app = app
        self._messages: deque[Any] = deque()
        self._full_partitions: set[TP] = set()
        self._has_some, self._has_room = asyncio.Event(), asyncio.Event()
        app.flow_control.manage_queue(self)

    def __len__(self) -> int:
        return len(self._messages)

    def holds(self, partition: Any) -> bool:
        """Whether a message of a partition waits here."""
        return any(message.tp == partition for message in self._messages)

    def offer(self, message: Any) -> bool:
        """Adds a message at once; False where there is no room, or during a rebalance."""
        if len(self._messages) >= self.size or not self._app.flow_control.is_active():
            return False
        self._messages.append(message)
        self._has_some.set()
        if len(self._messages) >= HIGH * self.size and message.tp not in self._full_partitions:
            # The partition of a message is of aiokafka's class; the consumer needs Faust's.
            partition = TP(*message.tp)
            self._full_partitions.add(partition)
            self._app.consumer.on_buffer_full(partition)
        return True

    async def put(self, message: Any) -> None:
        """Adds a message as soon as there is room for it and no rebalance."""
        await self._app.flow_control.acquire()
        while not self.offer(message):
            self._has_room.clear()
            await self._has_room.wait()

    def clear(self) -> None:
        """Discards all messages. Faust calls it at the beginning and at the end of a rebalance, after which
        it fetches all assigned partitions again, also paused ones.
        """
        self._messages.clear()
        self._full_partitions.clear()
        self._has_room.set()

    async def batches(self, size: int, wait: float, admission: Admission) -> AsyncIterator[list[Any]]:
        """Batches of up to `size` messages; never ends by itself. A batch waits at most `wait` seconds until
        it is full, and then until `admission` has a place. Messages that arrive meanwhile are added to it.
        """
        try:
            while True:
                batch = await self._take(size, wait, admission)
                now = time.monotonic()
                # Without these times Faust logs that no records are processed.
                self._app.monitor.stream_inbound_time |= {message.tp: now for message in batch}
                yield batch
                # Lets the inference of the batch begin and take over the place.
                await asyncio.sleep(0)
                admission.leave()
        finally:
            admission.leave()

    async def _take(self, size: int, wait: float, admission: Admission) -> list[Any]:
        """The next batch, which has at least one message."""
        while True:
            await self._wait_for(1)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wait_for(size)
            await admission.enter()
            batch = self._given_out(size)
            self._make_room()
            if batch:
                return batch
            admission.leave()

    async def _wait_for(self, n: int) -> None:
        """Waits until the queue has `n` messages."""
        while len(self._messages) < n:
            self._has_some.clear()
            await self._has_some.wait()

    def _given_out(self, size: int) -> list[Any]:
        """The first `size` messages of the current group generation; older ones are discarded."""
        app, messages = self._app, self._messages
        if not app.flow_control.is_active():
            messages.clear()
        generation = app.consumer_generation_id
        batch: list[Any] = []
        while messages and len(batch) < size:
            message = messages.popleft()
            if message.generation_id == generation:
                batch.append(message)
        app.consumer.unacked.update(batch)
        return batch

    def _make_room(self) -> None:
        self._has_room.set()
        if len(self._messages) <= LOW * self.size:
            for partition in self._full_partitions:
                self._app.consumer.on_buffer_drop(partition)
            self._full_partitions.clear()
