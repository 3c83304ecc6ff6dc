"""Writes signals to their topic, and a tombstone for each pair that is no longer a signal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaProducer

from streams.broker.consumer import running_client
from streams.broker.ranges import read_chunks
from streams.codec import encode
from streams.records import Signal
from streams.settings import Settings
from streams.topics import SIGNALS, broker_name, require


async def published_keys(settings: Settings) -> set[str]:
    """The keys that the topic has a signal for."""
    latest: dict[str, bool] = {}
    async for chunk in read_chunks(settings, SIGNALS, "beginning", "end", lambda done, total: None):
        for message in chunk:
            latest[(message.key or b"").decode(errors="replace")] = message.value is not None
    return {key for key, present in latest.items() if present}


async def publish(settings: Settings, signals: Sequence[Signal], ended: set[str]) -> None:
    """Sends the signals and tombstones under their keys, and waits for the broker's confirmations."""
    await require(settings, (SIGNALS,))
    messages: Mapping[str, bytes | None] = {s.key: encode(s) for s in signals} | dict.fromkeys(ended)
    producer = AIOKafkaProducer(**settings.client(), acks="all", enable_idempotence=True, linger_ms=5)
    async with running_client(producer):
        name = broker_name(settings, SIGNALS.name)
        sent = [await producer.send(name, key=k.encode(), value=v) for k, v in messages.items()]
        await asyncio.gather(*sent)
