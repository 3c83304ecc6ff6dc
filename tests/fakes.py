"""A clock, a fake model and fake ports that record the order of sends, confirmations and acknowledgements."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from models.loading import Loaded
from models.types import Mention
from streams.items import Item
from streams.records import Headers, Inbound

T = TypeVar("T")


class Clock:
    """A clock that goes on when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeTagger:
    """Tags nothing and raises on a text with the poison word; when `failing`, raises on every text."""

    task = "ner"

    def __init__(self, poison: str = "poison", failing: bool = False) -> None:
        self.poison = poison
        self.failing = failing
        self.batches: list[list[str]] = []

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Mention]]:
        self.batches.append(list(batch))
        if self.failing or any(self.poison in text for text in batch):
            raise ValueError(f"cannot read {batch[0]}")
        return [[] for _ in batch]


def loaded(model: Any, version: str = "0123456789ab") -> Loaded:
    """A model under a version, with a canary check that FakeTagger passes unless it is failing."""
    return Loaded("ner", version, "fake", model, (["canary"], [[]], 0.0))


class FakePorts:
    """A producer whose confirmations the test can hold back or let fail; `log` has all events in order."""

    def __init__(self, snapshot: Loaded) -> None:
        self.workers = 1
        self.batch_characters = 100_000
        self.max_output_bytes = 1_000_000
        self.keep_text = False
        self.current = snapshot
        self.log: list[str] = []
        self.sent: list[tuple[str, bytes | None, bytes | None, Headers]] = []
        self.acked: list[int] = []
        self.failing_topics: set[str] = set()
        self.hold: asyncio.Event | None = None
        self.observed: list[Item] = []
        self.lost: set[int] = set()
        """Offsets of records that belong to another process after inference."""

    def snapshot(self) -> Loaded:
        return self.current

    async def infer(self, work: Callable[[], T], batch: Sequence[Inbound]) -> T:
        await asyncio.sleep(0)
        return work()

    async def owns(self, batch: Sequence[Inbound]) -> bool:
        await asyncio.sleep(0)
        return not any(record.offset in self.lost for record in batch)

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[Any]:
        assert key is not None or value is not None, "the client of Kafka refuses it"
        self.sent.append((topic, key, value, headers))
        self.log.append(f"send {topic}")
        return asyncio.ensure_future(self._deliver(topic))

    async def ack(self, record: Inbound) -> None:
        self.acked.append(record.offset)
        self.log.append(f"ack {record.offset}")

    def observe(self, done: Sequence[Item]) -> None:
        self.observed += done

    async def _deliver(self, topic: str) -> None:
        if self.hold is not None:
            await self.hold.wait()
        await asyncio.sleep(0)
        if topic in self.failing_topics:
            raise ConnectionError(f"{topic}: not delivered")
        self.log.append(f"confirmed {topic}")

    def to(self, topic: str) -> list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]]:
        """Key, value and headers of everything sent to a topic."""
        return [(key, value, dict(headers)) for t, key, value, headers in self.sent if t == topic]


def inbound(offset: int, value: bytes | None, topic: str = "posts") -> Inbound:
    """A source record of partition 0 at this offset."""
    return Inbound(topic, 0, offset, f"key-{offset}".encode(), value, 1_760_000_000.0)


async def batches_of(*batches: Sequence[Inbound]) -> AsyncIterator[Sequence[Inbound]]:
    """The batches one after the other, as a consumer would deliver them."""
    for batch in batches:
        yield batch
        await asyncio.sleep(0)
