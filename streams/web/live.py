"""Server-sent events: each coded report that arrives on the topic, rendered once for all browsers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from aiohttp import web
from aiokafka import TopicPartition

from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.watch import BrokerWatch
from streams.codec import BadRecord, decode
from streams.order import revision_of
from streams.records import CodedReport
from streams.settings import Settings
from streams.store.rows import Rows as StoredRows
from streams.topics import CONSUMED, EVENTS, broker_name, partition_counts
from streams.web.reports import opened, pieces

log = logging.getLogger(__name__)
#: Reports that a browser may be behind before it misses some, and most that are shown in a second.
BACKLOG, PER_SECOND = 50, 5
PING_SECONDS = 15.0
RATE_SECONDS = 60.0


class Live:
    """Follows the end of `events`; `stream` serves one browser."""

    def __init__(self, settings: Settings, render: Callable[[dict[str, Any]], str]) -> None:
        self._settings = settings
        self._broker = BrokerWatch(settings)
        self._render = render
        self._listeners: set[asyncio.Queue[str]] = set()
        self._arrivals: deque[float] = deque(maxlen=100_000)
        self._shown: deque[float] = deque(maxlen=PER_SECOND)
        self.dead_letters: dict[str, int] = {}

    @property
    def rate(self) -> float:
        """Reports a second over the last minute."""
        now = time.monotonic()
        return sum(1 for arrival in self._arrivals if now - arrival < RATE_SECONDS) / RATE_SECONDS

    async def run(self) -> None:
        """Until cancelled; a broker that fails is asked again."""
        while True:
            try:
                await self._broker.until_answered(self._follow)
            except Exception as error:
                log.warning("no live reports: %s", error)
                await asyncio.sleep(PING_SECONDS)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        queue: asyncio.Queue[str] = asyncio.Queue(BACKLOG)
        self._listeners.add(queue)
        try:
            await response.write(b": hello\n\n")
            clock = asyncio.get_running_loop().time
            rate_due = clock() + PING_SECONDS
            while True:
                try:
                    async with asyncio.timeout_at(rate_due):
                        html = await queue.get()
                    lines = "".join(f"data: {line}\n" for line in html.splitlines())
                    await response.write(f"event: report\n{lines}\n".encode())
                except TimeoutError:
                    rate_due = clock() + PING_SECONDS
                    await response.write(f"event: rate\ndata: {self.rate:.2f}\n\n".encode())
        except ConnectionResetError:
            return response
        finally:
            self._listeners.discard(queue)

    async def _follow(self) -> None:
        consumer = kafka_consumer(
            self._settings, EVENTS.name, group_id=None, enable_auto_commit=False, auto_offset_reset="latest"
        )
        async with running_client(consumer):
            self._broker.update(True)
            looked = 0.0
            while True:
                if time.monotonic() - looked > PING_SECONDS:
                    self.dead_letters = await self._dead_letters(consumer)
                    looked = time.monotonic()
                for messages in (await consumer.getmany(timeout_ms=500, max_records=500)).values():
                    for message in messages:
                        self.offer(message.value)

    def offer(self, value: bytes | None) -> None:
        """Sends a message of the topic to all browsers, unless too many come at once."""
        now = time.monotonic()
        self._arrivals.append(now)
        too_many = len(self._shown) == PER_SECOND and now - self._shown[0] < 1
        if value is None or not self._listeners or too_many:
            return
        try:
            report = report_row(decode(CodedReport, value), texts=self._settings.web_texts)
        except BadRecord:
            return
        self._shown.append(now)
        html = self._render(report)
        for queue in self._listeners:
            with suppress(asyncio.QueueFull):
                queue.put_nowait(html)

    async def _dead_letters(self, consumer: Any) -> dict[str, int]:
        """Topic to the letters that it has."""
        counts = await partition_counts(self._settings)
        topics = [t.dead_letters.name for t in CONSUMED if t.dead_letters.name in counts]
        names = {TopicPartition(broker_name(self._settings, name), 0): name for name in topics}
        first, ends = await consumer.beginning_offsets(list(names)), await consumer.end_offsets(list(names))
        return {name: ends[tp] - first[tp] for tp, name in names.items()}


def report_row(record: CodedReport, *, texts: bool) -> dict[str, Any]:
    """A record as the page shows a report of the store."""
    rows = StoredRows()
    rows.add(record.id, revision_of(record), record)
    report = rows.reports[0]
    text = (report["text"] or "") if texts else ""
    report["text"] = text or None
    report["events"] = [opened(event) for event in rows.events]
    for event in report["events"]:
        event["words"] = text[event["span_start"] : event["span_end"]]
    report["mentions"] = [asdict(mention) for mention in record.mentions]
    report["pieces"] = pieces(text, report["mentions"], report["events"])
    return report
