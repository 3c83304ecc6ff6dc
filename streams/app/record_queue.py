"""The records that a stage has fetched and not yet taken: between Faust's consumer and the stage.

Faust would give each record to a stream: through a task for each of them, several coroutines and its sensors,
which cost more than decoding, stamping, encoding and sending it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Protocol

from faust.types import TP

#: Shares of the size. From the first on a partition that fills the queue is not fetched, until the queue is
#: down to the second.
HIGH, LOW = 0.8, 0.4


class Admission(Protocol):
    """Decides when a batch may be taken."""

    async def enter(self) -> None: ...

    def leave(self) -> None:
        """What entered needs its place no more; without effect where nothing has entered."""


class RecordQueue:
    """A bounded queue of Faust's messages that Faust empties on a rebalance.

    A message counts as given out, so that a rebalance and a stop wait for its acknowledgement, once it is
    taken. One that was fetched before a rebalance is never given out.
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

    def offer(self, message: Any) -> bool:
        """Adds a message at once; False where there is no room, or during a rebalance."""
        if len(self._messages) >= self.size or not self._app.flow_control.is_active():
            return False
        self._messages.append(message)
        self._has_some.set()
        if len(self._messages) >= HIGH * self.size and message.tp not in self._full_partitions:
            # A message has aiokafka's class of partitions, and the consumer wants Faust's.
            partition = TP(*message.tp)
            self._full_partitions.add(partition)
            self._app.consumer.on_buffer_full(partition)
        return True

    async def put(self, message: Any) -> None:
        """Adds a message once there is room for it and no rebalance."""
        await self._app.flow_control.acquire()
        while not self.offer(message):
            self._has_room.clear()
            await self._has_room.wait()

    def clear(self) -> None:
        """Forgets all messages; Faust calls it when a rebalance begins and when it has ended. Afterwards the
        assigned partitions are fetched, full or not.
        """
        self._messages.clear()
        self._full_partitions.clear()
        self._has_room.set()

    async def batches(self, size: int, wait: float, admission: Admission) -> AsyncIterator[list[Any]]:
        """Batches of up to `size` messages, each of which has entered `admission`. A message waits at most
        `wait` seconds for others, and then as long as nothing is admitted: a batch has all that came until
        then. Never ends by itself.
        """
        try:
            while True:
                batch = await self._take(size, wait, admission)
                now = time.monotonic()
                # Otherwise Faust logs that no records are processed.
                self._app.monitor.stream_inbound_time |= {message.tp: now for message in batch}
                yield batch
                # The inference of the batch begins first, with its place, if it has one.
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
        """Until there are so many messages."""
        while len(self._messages) < n:
            self._has_some.clear()
            await self._has_some.wait()

    def _given_out(self, size: int) -> list[Any]:
        """The first messages of the present generation; those before and between them are forgotten."""
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
