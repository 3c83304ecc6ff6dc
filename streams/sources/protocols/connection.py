"""HTTP for the protocols: sessions, statuses, and errors as interruptions. `bodies` reads the answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import aiohttp

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
    """Seconds until a time: seconds since 1970, ISO 8601 or the format of HTTP."""
    try:
        if value.isascii() and value.isdecimal():
            moment = float(value)
        elif "," in value:
            moment = parsedate_to_datetime(value).timestamp()
        else:
            moment = datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment - time.time())


def parse_time(value: object) -> datetime | None:
    """A time in ISO 8601, with UTC where it has no zone; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def language_code(value: object) -> str | None:
    """The ISO 639-1 code of a language tag, `en-GB`, or of a locale, `en_GB`; None for anything else."""
    code = value.replace("_", "-").partition("-")[0].lower() if isinstance(value, str) else ""
    return code if len(code) == 2 and code.isascii() and code.isalpha() else None  # noqa: PLR2004  ISO 639-1
