"""What a program writes into a file of JSON Lines that grows."""

from __future__ import annotations

import orjson

from tests.streams.sources.players.world import Happening


def id_of(number: int) -> str:
    return f"line-{number}"


def line(happening: Happening) -> bytes:
    """A happening as the source `ndjson` reads it."""
    deleted = {"deleted": True} if happening.kind == "delete" else {}
    return orjson.dumps({"id": id_of(happening.number), "text": happening.text, **deleted}) + b"\n"
