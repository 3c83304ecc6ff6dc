"""Checks whether the broker answers, and logs once when that changes.

The Kafka clients wait for a broker that is unavailable without reporting it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from streams import metrics
from streams.broker.patience import PAUSE, is_lasting, refusal
from streams.settings import Settings
from streams.uninterrupted import uninterrupted

T = TypeVar("T")
log = logging.getLogger(__name__)
#: Seconds between two requests.
CHECK_SECONDS = 2.0
#: Seconds without an answer after which the broker counts as unavailable.
TIMEOUT_SECONDS = 4.0


class BrokerWatch:
    """`up` is the result of the last request."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.up = True
        self._since = time.monotonic()
        metrics.BROKER.set(1)

    async def run(self) -> None:
        """Sends requests until cancelled."""
        client: Any = None
        try:
            while True:
                try:
                    # Not wait_for: up to Python 3.11 it loses a cancellation that arrives with the result.
                    async with asyncio.timeout(TIMEOUT_SECONDS):
                        if client is None:
                            client = AIOKafkaAdminClient(**self._settings.client())
                            await uninterrupted(client.start())
                        await client.describe_cluster()
                    self.update(True)
                except Exception:
                    self.update(False)
                    await _close(client)
                    client = None
                await asyncio.sleep(CHECK_SECONDS)
        finally:
            await _close(client)

    async def until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` gives, asked again as long as no broker answers. Raises what it raises otherwise, and
        the error of a broker that refuses the connection or the login.
        """
        while True:
            try:
                answer = await ask()
            except (KafkaError, TimeoutError, ConnectionError) as error:
                if is_lasting(error):
                    raise
                if refused := await refusal(self._settings):
                    raise refused from error
                self.update(False)
            else:
                self.update(True)
                return answer
            await asyncio.sleep(PAUSE)

    def update(self, up: bool) -> None:
        """Receives whether the broker has answered."""
        if up == self.up:
            return
        self.up = up
        metrics.BROKER.set(up)
        now = time.monotonic()
        address = ",".join(self._settings.bootstrap)
        if up:
            log.warning("the broker at %s answers again, after %.0f s", address, now - self._since)
        else:
            log.error("the broker at %s does not answer: waiting for it; no records are lost", address)
        self._since = now


async def _close(client: Any) -> None:
    if client is not None:
        with suppress(Exception):
            await uninterrupted(client.close())
