"""The ports of a stage on a running Faust app."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import faust

from models.loading import Loaded
from streams.app.record_queue import RecordQueue
from streams.inference_threads import InferenceWorkers
from streams.items import Item
from streams.monitoring.drift import Drift
from streams.monitoring.progress import Progress
from streams.records import Headers, Inbound
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.topics import broker_name, table_name

T = TypeVar("T")
log = logging.getLogger(__name__)
#: Records of the first batch of a stage.
FIRST_BATCH = 8


class _Place:
    """The admission of a stage's next batch, from its leaving the queue to its inference."""

    def __init__(self, inference: InferenceWorkers) -> None:
        self._inference = inference
        self._is_held = False

    async def enter(self) -> None:
        await self._inference.place()
        self._is_held = True

    def leave(self) -> None:
        if self.handed_over():
            self._inference.give_back()

    def handed_over(self) -> bool:
        """Whether the place was held; if so, it passes to the caller."""
        held, self._is_held = self._is_held, False
        return held


class FaustPorts:
    """The ports of a stage on a running Faust app."""

    def __init__(
        self,
        app: faust.App,
        records: RecordQueue,
        inference: InferenceWorkers,
        progress: Progress,
        settings: Settings,
    ) -> None:
        self.workers = inference.workers
        self.batch_characters = settings.batch_characters
        self.max_output_bytes = settings.max_output_bytes
        self.keep_text = settings.keep_text
        self._app = app
        self._records = records
        self._inference = inference
        self._place = _Place(inference)
        self._settings = settings
        self._progress = progress
        self._generation: object = None
        """That of the group in which the deaths were read last."""
        self._drift = Drift(progress.stage, settings.drift_sample, inference.run)
        self.handle: Handle
        self.measured = ""
        """The topic whose records are compared with the reference of the model."""

    def snapshot(self) -> Loaded:
        return self.handle.snapshot()

    async def infer(self, work: Callable[[], T], batch: Sequence[Inbound]) -> T:
        placed = self._place.handed_over()
        alone = any(record.deaths for record in batch)
        return await self._inference.run(
            partial(self._progress.infer, work, batch), placed=placed, alone=alone
        )

    async def owns(self, batch: Sequence[Inbound]) -> bool:
        consumer: Any = self._app.consumer
        messages = [record.token for record in batch]
        if await consumer._thread.membership.holds(min(m.generation_id for m in messages)):
            return True
        for message in messages:
            # Otherwise Faust would wait for their acknowledgement before it joins the group again.
            consumer.unacked.discard(message)
        log.warning("%s: %d records belong to another worker now: not sent", self._app.conf.id, len(batch))
        return False

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[Any]:
        # Topic.send would more than halve a worker's throughput (codecs, sensors, one more future for each
        # record).
        producer: Any = self._app.producer
        name = broker_name(self._settings, topic)
        sent: Awaitable[Any] = await producer._ensure_producer().send(
            name, value, key=key, headers=list(headers)
        )
        return sent

    async def ack(self, record: Inbound) -> None:
        consumer: Any = self._app.consumer
        consumer.ack(record.token)
        if record.deaths:
            await asyncio.to_thread(self._progress.in_flight.forget, self._progress.stage, record)

    def observe(self, done: Sequence[Item]) -> None:
        # Others than of the first source are not what the reference was made of.
        self._drift.offer([p for p in done if p.record.topic == self.measured], self.handle.current)

    async def batches(self, size: int, wait: float) -> AsyncIterator[Sequence[Inbound]]:
        """Batches of up to `size` source records, each after at most `wait` seconds and an admission to
        inference. Faust does not acknowledge them. The first one is small, for a first result soon.
        """
        first = FIRST_BATCH
        async for messages in self._records.batches(size, wait, self._place):
            await self._read_deaths(messages[0].generation_id)
            records = self._progress.in_flight.with_deaths(
                self._progress.stage, [_inbound(self._settings, message) for message in messages]
            )
            self._progress.batch = records
            for part in (records[:first], records[first:]):
                if part:
                    yield part
            first = 0

    async def _read_deaths(self, generation: object) -> None:
        """After each rebalance: the partitions may be those of a worker that has died."""
        if generation != self._generation:
            await asyncio.to_thread(self._progress.in_flight.read)
            self._generation = generation


def _inbound(settings: Settings, m: Any) -> Inbound:
    topic = table_name(settings, m.topic)
    return Inbound(topic, m.partition, m.offset, m.key, m.value, m.timestamp, _headers(m.headers), m)


def _headers(raw: Any) -> Headers:
    """Headers as pairs; Faust gives a dictionary, pairs or None. A value may be null."""
    if not raw:
        return ()
    pairs = raw.items() if isinstance(raw, dict) else raw
    return tuple(
        (name, value if value is None or isinstance(value, bytes) else str(value).encode())
        for name, value in pairs
    )
