"""Faust's consumer as the stages need it: of committed records, and acknowledged only when finished."""

from __future__ import annotations

import logging
from typing import Any

import faust
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer

from streams.broker import tolerant_headers
from streams.broker.consumer import ISOLATION
from streams.broker.membership import Membership

#: Of the classes that are services of Faust, whose starts and stops are Faust's messages and not ours.
FAUST_LOG = logging.getLogger("faust")


class _CommittedConsumerThread(AIOKafkaConsumerThread):
    """Faust's consumer thread, reading as `streams.broker.consumer` does: Faust has no setting for it."""

    logger = FAUST_LOG
    membership: Membership

    async def on_start(self) -> None:
        await super().on_start()
        self.membership = Membership(self._ensure_consumer()._coordinator)

    def _create_worker_consumer(self, transport: Any) -> Any:
        tolerant_headers.install()
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = ISOLATION
        return consumer


class CommittedConsumer(Consumer):
    logger = FAUST_LOG

    def _new_consumer_thread(self) -> Any:
        return _CommittedConsumerThread(self, loop=self.loop, beacon=self.beacon)


class ExplicitAckEvent(faust.Event):
    """A source record that is acknowledged only after the stage has set `finished`.

    On a rebalance Faust's stream skips the records that were fetched before it, and acknowledges them. If the
    same worker keeps the partition, their offsets would be committed although they were never processed.
    """

    finished = False

    def ack(self) -> bool:
        return bool(super().ack()) if self.finished else False
