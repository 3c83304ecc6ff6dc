"""Lines of JSON Lines as the source of files reads them, and a read to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from streams.sources.protocols.ndjson import Ndjson
from tests.streams.sources.kept import KeptDelivery, runner
from tests.streams.sources.players.running import sample


def line(number: int, **fields: Any) -> bytes:
    return orjson.dumps({"id": f"post-{number}", "text": f"awake {number}", **fields}) + b"\n"


def malformed() -> float:
    return sample("pv_source_items_total", source="ndjson", outcome="malformed")


async def read_to_the_end(path: Path, position: Any = None, **options: Any) -> KeptDelivery:
    delivery = KeptDelivery()
    one = runner(Ndjson(path=path, follow=False, **options), delivery, position)
    await one.run()
    await one.checkpoint()
    return delivery
