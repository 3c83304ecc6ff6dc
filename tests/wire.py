"""Records as earlier versions wrote them, in tests/data/wire."""

from __future__ import annotations

from pathlib import Path

WIRE = Path(__file__).parent / "data/wire"


def wire_bytes(name: str) -> bytes:
    """The bytes of a record: those of `coded-v3` are in coded/v3.json, without the line's end."""
    kind, version = name.split("-", 1)
    return (WIRE / kind / f"{version}.json").read_bytes().rstrip(b"\n")
