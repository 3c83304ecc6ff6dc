"""Knows whether the broker answers, and says so once when that changes.

The clients wait for a broker that is away by themselves; without this nobody would be told.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient

from streams import metrics
from streams.settings import Settings

log = logging.getLogger(__name__)
ASK_SECONDS = 2.0
#: A broker that does not answer within so long is away.
ANSWER_SECONDS = 4.0


class BrokerWatch:
    """`up` is what the last question gave."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.up = True
        self._since = time.monotonic()
        metrics.BROKER.set(1)

    async def run(self) -> None:
        """Asks until cancelled."""
        client: Any = None
        try:
            while True:
                try:
                    # Not wait_for: up to Python 3.11 it loses a cancellation that comes with an answer.
                    async with asyncio.timeout(ANSWER_SECONDS):
                        if client is None:
                            client = AIOKafkaAdminClient(**self._settings.client())
                            await client.start()
                        await client.describe_cluster()
                    self._found(True)
                except Exception:
                    self._found(False)
                    with suppress(Exception):
                        await client.close()
                    client = None
                await asyncio.sleep(ASK_SECONDS)
        finally:
            if client is not None:
                with suppress(Exception):
                    await client.close()

    def _found(self, up: bool) -> None:
        if up == self.up:
            return
        self.up = up
        metrics.BROKER.set(up)
        now = time.monotonic()
        where = ",".join(self._settings.bootstrap)
        if up:
            log.warning("the broker at %s answers again, after %.0f s", where, now - self._since)
        else:
            log.error("the broker at %s does not answer: waiting for it; nothing is lost", where)
        self._since = now
