"""What is read of an answer: the whole of one that ends, or its lines. Both are bounded, and neither keeps
the event loop from the other sources.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, Protocol

import orjson
from aiohttp import ClientResponse

from streams.sources.protocols.connection import REFUSALS, REQUEST_SECONDS, answered, raise_for
from streams.sources.source import Interrupted

#: Bytes of the largest answer that is read as a whole: a page of 40 posts, or a thousand rules, has far less.
MAX_BODY = 8 << 20
#: A longer line is skipped, and not kept in memory.
MAX_LINE = 1 << 20
#: Bytes of a skipped line after which the connection is left.
MAX_SKIPPED = 16 << 20
#: Bytes that are taken at once, and lines after which other tasks get their turn.
CHUNK, LINES_A_TURN = 1 << 16, 100


class Content(Protocol):
    """The body of an answer."""

    async def read(self, n: int = -1, /) -> bytes:
        """At most n bytes; none at the end."""


async def body_of(content: Content, most: int = MAX_BODY) -> bytes:
    """The whole body. Raises Interrupted for one of more than `most` bytes, and TimeoutError."""
    body = bytearray()
    async with asyncio.timeout(REQUEST_SECONDS):
        while chunk := await content.read(CHUNK):
            body += chunk
            if len(body) > most:
                raise Interrupted("http", f"an answer of more than {most} bytes")
            await asyncio.sleep(0)
    return bytes(body)


async def json_of(request: Awaitable[ClientResponse], refusals: frozenset[int] = REFUSALS) -> Any:
    """The JSON that answers a request. Raises SourceFailed for one of the statuses `refusals`, Interrupted
    for another one that is no success and for an answer that is too large or no JSON, and TimeoutError.
    """
    async with answered(request) as response:
        raise_for(response.status, response.headers, refusals)
        body = await body_of(response.content)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Interrupted("http", "an answer that is not readable") from None


async def read_lines(
    content: Content, silence: float, max_line: int = MAX_LINE, *, has_end: bool = False
) -> AsyncGenerator[bytes | None, None]:
    """The lines of an answer without their ends; None stands for one above `max_line` bytes. What follows the
    last line end is dropped, unless the answer `has_end`, as that of no stream has. Raises TimeoutError when
    nothing arrives for `silence` seconds, and Interrupted for a line of more than MAX_SKIPPED bytes.
    """
    line, skipped = bytearray(), 0
    while chunk := await _chunk(content, silence):
        for i, part in enumerate(chunk.split(b"\n")):
            if i:
                yield None if skipped else bytes(line)
                line, skipped = bytearray(), 0
            if i % LINES_A_TURN == 0:
                # What is there already is read without waiting, and the other sources would stand still.
                await asyncio.sleep(0)
            if skipped or len(line) + len(part) > max_line:
                skipped += len(line) + len(part)
                line.clear()
            else:
                line += part
            if skipped > MAX_SKIPPED:
                raise Interrupted("hostile", f"a line of more than {MAX_SKIPPED} bytes")
    if has_end and (line or skipped):
        yield None if skipped else bytes(line)


async def _chunk(content: Content, silence: float) -> bytes:
    async with asyncio.timeout(silence):
        try:
            return await content.read(CHUNK)
        except RuntimeError:  # what aiohttp raises where the connection was lost before this read
            raise Interrupted("closed") from None
