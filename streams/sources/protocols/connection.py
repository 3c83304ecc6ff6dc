"""HTTP for the protocols: sessions, statuses, errors as interruptions, and bounded answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeVar

import aiohttp
import orjson
from aiohttp import ClientResponse

from streams.dates import stated_time
from streams.sources.protocols.reach import PublicResolver, Reach
from streams.sources.source import Interrupted, SourceFailed

_Answer = TypeVar("_Answer", bound=AbstractAsyncContextManager[Any])
#: Seconds to connect, and for one request with an answer that ends.
CONNECT_SECONDS, REQUEST_SECONDS = 30.0, 60.0
#: Trying again does not help: wrong request, no or wrong token, not allowed, no such address.
REFUSALS = frozenset({400, 401, 403, 404, 410})
LIMITED = 429
FIRST_ERROR = 300


def session(named: Iterable[str], headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    """A session without a time limit on the whole of an answer; proxies come from the environment. Two things
    raise Interrupted: a compressed answer, of which a few bytes may stand for gigabytes, and what leads to an
    address that is neither public nor that of a server that the operator `named`.
    """
    reach = Reach(named)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=PublicResolver(reach)),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity", **(headers or {})},
        trust_env=True,
        auto_decompress=False,
        middlewares=(reach, _as_asked),
    )


async def _as_asked(request: aiohttp.ClientRequest, ask: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    response = await ask(request)
    codings = ",".join(response.headers.getall("Content-Encoding", ())).lower().split(",")
    # The status of an error says more, and the rest of it is not read.
    if response.status < FIRST_ERROR and not {coding.strip() for coding in codings} <= {"identity", ""}:
        response.close()
        raise Interrupted("http", "a compressed answer, which was not asked for")
    return response


@asynccontextmanager
async def answered(request: Awaitable[_Answer]) -> AsyncIterator[_Answer]:
    """The answer to a request. Raises TimeoutError where its headers do not come in time: a server may accept
    a connection and then say nothing.
    """
    async with asyncio.timeout(REQUEST_SECONDS):
        response = await request
    async with response:
        yield response


@contextmanager
def interruptions() -> Iterator[None]:
    """Raises Interrupted for the errors of a connection. Their messages may quote addresses, so only their
    types are kept.
    """
    try:
        yield
    except aiohttp.WSServerHandshakeError as error:
        raise_for(error.status, error.headers or {})
        raise Interrupted("http", f"status {error.status}") from None
    except TimeoutError:
        raise Interrupted("silent") from None
    # Of a host that is none, to which an answer may redirect, the library raises UnicodeError.
    except (aiohttp.ClientError, OSError, UnicodeError) as error:
        raise Interrupted("network", type(error).__name__) from None


def raise_for(status: int, headers: Mapping[str, str], refusals: frozenset[int] = REFUSALS) -> None:
    """Raises SourceFailed for a refusal and Interrupted for every other status that is no success."""
    if status < FIRST_ERROR:
        return
    if status in refusals:
        raise SourceFailed(f"the server refuses with status {status}")
    reason: Any = "limited" if status == LIMITED else "http"
    raise Interrupted(reason, f"status {status}", asked_wait(status, headers))


def asked_wait(status: int, headers: Mapping[str, str]) -> float | None:
    """Seconds that an answer asks to wait: `Retry-After`, or of a 429 `X-Rate-Limit-Reset`."""
    value = headers.get("Retry-After")
    if value is None and status == LIMITED:
        value = headers.get("x-rate-limit-reset") or headers.get("X-RateLimit-Reset")
        return None if value is None else _until(value)
    if value is None:
        return None
    return float(value) if value.isascii() and value.isdecimal() else _until(value)


def _until(value: str) -> float | None:
    """Seconds until a time: seconds since 1970, ISO 8601 or the format of HTTP; None for anything else."""
    moment = stated_time(value).seconds
    return None if moment is None else max(0.0, moment - time.time())


def language_code(value: object) -> str | None:
    """The ISO 639-1 code of a language tag, `en-GB`, or of a locale, `en_GB`; None for anything else."""
    code = value.replace("_", "-").partition("-")[0].lower() if isinstance(value, str) else ""
    return code if len(code) == 2 and code.isascii() and code.isalpha() else None  # noqa: PLR2004  ISO 639-1


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
