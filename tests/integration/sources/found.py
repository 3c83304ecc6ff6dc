"""What came to a topic in the runs of the sources, against what should have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

from streams.broker.consumer import kafka_consumer
from streams.settings import Settings
from streams.topics import POSTS


@dataclass(slots=True)
class Found:
    """What came to the topics: the last text of each key, None after a tombstone."""

    state: dict[str, str | None] = field(default_factory=dict)
    records: int = 0
    tombstones: set[str] = field(default_factory=set)

    def count(self, key: str, value: bytes | None) -> None:
        self.records += 1
        self.state[key] = None if value is None else orjson.loads(value)["text"]
        if value is None:
            self.tombstones.add(key)

    def compared(self, expected: dict[str, str | None]) -> dict[str, int]:
        """Figures of a run; a key is lost where its last version is not the last on the topic."""
        deleted = {key for key, text in expected.items() if text is None}
        return {
            "posts": len(expected),
            "deletions": len(deleted),
            "records": self.records,
            "lost": sum(t is not None and self.state.get(k) != t for k, t in expected.items()),
            "deletions_missing": sum(self.state.get(key) is not None for key in deleted),
            "other_keys": len((self.state.keys() - expected.keys()) - self.tombstones),
        }


@asynccontextmanager
async def counting(settings: Settings, *topics: str) -> AsyncIterator[Found]:
    """Reads the topics, by default the input topic of posts, while the block runs: an embedded broker keeps
    little of them.
    """
    found = Found()
    consumer = kafka_consumer(
        settings, *(topics or (POSTS.name,)), group_id=None, auto_offset_reset="earliest"
    )
    await consumer.start()

    async def read() -> None:
        async for message in consumer:
            found.count((message.key or b"").decode(), message.value)

    task = asyncio.create_task(read())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await consumer.stop()
