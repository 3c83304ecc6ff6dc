"""Writes signals to their topic, and a tombstone for each pair that is no longer a signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from streams.broker.consumer import send_all
from streams.broker.ranges import read_chunks
from streams.codec import BadRecord, decode, encode
from streams.records import Signal
from streams.settings import Settings
from streams.signals.population import Level
from streams.topics import SIGNALS, require


async def published_keys(settings: Settings, level: Level) -> set[str]:
    """The keys that the topic has a signal of this level for."""
    levels: dict[str, Level | None] = {}
    async for chunk in read_chunks(settings, SIGNALS, "beginning", "end", lambda done, total: None):
        for message in chunk:
            levels[(message.key or b"").decode(errors="replace")] = _level(message.value)
    return {key for key, one in levels.items() if one == level}


def _level(value: bytes | None) -> Level | None:
    """Of a signal; None for a tombstone and for what is none."""
    with suppress(BadRecord):
        return decode(Signal, value).level
    return None


async def publish(settings: Settings, signals: Sequence[Signal], ended: set[str]) -> None:
    """Sends the signals and tombstones under their keys, and waits for the broker's confirmations."""
    await require(settings, (SIGNALS,))
    messages: Mapping[str, bytes | None] = {s.key: encode(s) for s in signals} | dict.fromkeys(ended)
    await send_all(settings, ((SIGNALS.name, key.encode(), value) for key, value in messages.items()))
