"""Asks workers for their state by HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from models.redaction import redact

#: Seconds for each request.
TIMEOUT_SECONDS = 5.0
#: Bytes of an answer, of which a worker needs a few kB.
MOST_BYTES = 1 << 20


@dataclass(slots=True)
class WorkerStatus:
    """The state that a worker reports; `error` where it does not answer."""

    address: str
    ready: dict[str, bool] = field(default_factory=dict)
    """Stage to whether it has its partitions and its broker answers."""
    stalled: list[str] = field(default_factory=list)
    """Stages whose inference is beyond its deadline."""
    releases: dict[str, str] = field(default_factory=dict)
    """Task to the version that runs."""
    refused: dict[str, str] = field(default_factory=dict)
    """Task to the version that was refused."""
    error: str = ""


async def ask_workers(addresses: Sequence[str]) -> list[WorkerStatus]:
    """The state of each worker, in the order of the addresses (host:port, or a URL)."""
    if not addresses:
        return []
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        return await asyncio.gather(*(_ask(session, address) for address in addresses))


async def _ask(session: aiohttp.ClientSession, address: str) -> WorkerStatus:
    status = WorkerStatus(redact(address))
    root = (address if "://" in address else f"http://{address}").rstrip("/")
    try:
        live = await _get(session, f"{root}/health/live")
        status.stalled = [str(stage) for stage in live["stalled"]]
        ready = await _get(session, f"{root}/health/ready")
        status.ready = {str(stage): bool(value) for stage, value in ready.items()}
        for task, state in (await _get(session, f"{root}/releases")).items():
            status.releases[task] = str(state["version"])
            if state["refused"]:
                status.refused[task] = str(state["refused"]["version"])
    except (
        aiohttp.ClientError,
        TimeoutError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        status.error = redact(str(error)) or type(error).__name__
    return status


async def _get(session: aiohttp.ClientSession, url: str) -> Any:
    """The JSON of an answer of any status. Raises ValueError where it is none, or too large."""
    async with session.get(url) as answer:
        content = bytearray()
        async for part in answer.content.iter_any():
            content += part
            if len(content) > MOST_BYTES:
                raise ValueError(f"an answer of more than {MOST_BYTES} bytes")
        return orjson.loads(content)
