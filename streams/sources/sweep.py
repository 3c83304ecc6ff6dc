"""Asks a source regularly which of the kept posts it has deleted, where its stream may not say so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from aiokafka.errors import KafkaError

from streams.broker.ranges import Stalled, read_chunks
from streams.intake.items import Item
from streams.settings import Settings
from streams.sources.source import Backoff, Interrupted, Position, Step
from streams.topics import Topic

HOUR = 3600.0
#: Seconds between two sweeps at least, because each reads the topics.
LEAST = 300.0
#: Seconds that the clocks of the source and of this machine may differ.
OVERLAP = HOUR
Kept = Callable[[str], Awaitable[list[str]]]
"""The ids of all reports that are kept and begin with a prefix."""


def kept_on(settings: Settings, *read: Topic[object]) -> Kept:
    """Finds the ids on topics: those whose last record is no tombstone. Reads them from the beginning."""

    async def kept(prefix: str) -> list[str]:
        start, ids = prefix.encode(), dict[bytes, bool]()
        for topic in read:
            async for records in read_chunks(settings, topic, "beginning", "end", lambda done, total: None):
                for record in records:
                    if record.key is not None and record.key.startswith(start):
                        ids[record.key] = record.value is not None
        found = [key.decode(errors="replace") for key, there in ids.items() if there]
        # A key that is not UTF-8 is no id of a source; whoever wrote it must not end the sweep.
        return [id_ for id_ in found if "\ufffd" not in id_]

    return kept


Check = Callable[[list[str], float], AsyncGenerator[Sequence[Item], None]]
"""Of the posts with the given ids, in parts, the deletions of those that the source no longer has, and those
that were edited since a time, in seconds since 1970. Raises Interrupted.
"""


@dataclass(slots=True, kw_only=True)
class Sweep:
    """A source of deletions, and of edits where the protocol reports them."""

    name: str
    key: str
    prefix: str
    """What the ids of the source's reports begin with."""
    kept: Kept
    check: Check
    every: float
    """Seconds from the end of one sweep to the next."""
    least: float = LEAST
    backoff: Backoff = field(default_factory=Backoff)
    reuses_ids: bool = False
    due: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by others when the stream may have missed a deletion: the next sweep comes at once."""

    async def read(self, position: Position | None) -> AsyncGenerator[Step, None]:
        yield Step()
        swept = (position or {}).get("swept")
        # A time in the future, after a clock was wrong, must not put off the sweep.
        wait = (
            0.0 if not isinstance(swept, int | float) else min(self.every, swept + self.every - time.time())
        )
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wait)):
                    await self.due.wait()
            self.due.clear()
            began = round(time.time())
            since = swept - OVERLAP if isinstance(swept, int | float) else 0.0
            try:
                if ids := await self.kept(self.prefix):
                    async with aclosing(self.check(ids, since)) as parts:
                        async for part in parts:
                            yield Step(items=tuple(part))
            except Interrupted:
                # What the stream may have missed is still not asked for.
                self.due.set()
                raise
            except (KafkaError, Stalled) as error:
                # The broker is away: the streams of the process wait for it, and this must not end them.
                self.due.set()
                raise Interrupted("network", type(error).__name__) from None
            swept = began
            yield Step(position={"swept": swept})
            await asyncio.sleep(self.least)
            wait = self.every - self.least
