"""Access tokens for SASL OAUTHBEARER: from a file, or from a token server (RFC 6749, section 4.4)."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_plus

import aiohttp
import orjson
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError

from streams.credentials.files import MAX_BYTES, read_secret

log = logging.getLogger(__name__)
#: Seconds for one request to the token server.
REQUEST_SECONDS = 10.0
#: Seconds before its end at which a token is renewed, or the last fifth of its lifetime if that is shorter.
RENEWAL_SECONDS = 60.0
#: Lifetime in seconds of a token whose answer does not state one.
DEFAULT_LIFETIME = 60.0
#: A clock that goes on while the machine is suspended (on Linux), as the lifetime of a token does.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _now() -> float:
    return time.clock_gettime(_CLOCK)


class TokenError(KafkaError):  # type: ignore[misc]
    """No access token is available. Kafka clients treat it as a failed connection and try again."""


class FileTokens(AbstractTokenProvider):  # type: ignore[misc]
    """The token in a file, read for every connection: another process, such as a sidecar, replaces it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        """The present token; raises TokenError."""
        try:
            return (await asyncio.to_thread(read_secret, self._path)).strip()
        except ValueError as error:
            raise TokenError(f"no access token: {error}") from None


class Client(NamedTuple):
    """What identifies this program to a token server."""

    url: str
    id: str
    secret: str
    scope: str


class _Token(NamedTuple):
    value: str
    renew_at: float
    expires_at: float


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens that the client-credentials grant gives, each used until shortly before it expires.

    There is no lock, because Faust's consumer has an event loop of its own: two clients that connect at the
    same moment may both request a token.
    """

    def __init__(self, client: Client, clock: Callable[[], float] = _now) -> None:
        self._client = client
        self._clock = clock
        self._token: _Token | None = None

    async def token(self) -> str:
        """A valid token; raises TokenError."""
        token = self._token
        if token is not None and self._clock() < token.renew_at:
            return token.value
        try:
            self._token = await self._request()
        except (aiohttp.ClientError, TimeoutError, TokenError) as error:
            # The message of a client error may quote the answer.
            reason = str(error) if isinstance(error, TokenError) else type(error).__name__
            if token is None or self._clock() >= token.expires_at:
                raise TokenError(f"no access token from the token server: {reason}") from None
            log.warning("the access token is not renewed yet: %s", reason)
            return token.value
        return self._token.value

    async def _request(self) -> _Token:
        form = {"grant_type": "client_credentials"} | (
            {"scope": self._client.scope} if self._client.scope else {}
        )
        # Section 2.3.1: both are form-encoded before they are joined.
        pair = f"{quote_plus(self._client.id)}:{quote_plus(self._client.secret)}"
        headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        asked_at = self._clock()
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.post(self._client.url, data=form, headers=headers, allow_redirects=False) as response,
        ):
            body = await _read(response.content)
        if response.status != 200:  # noqa: PLR2004  HTTP's OK
            raise TokenError(f"it answers {response.status}{_error_code(body)}")
        return _parse(body, asked_at)


async def _read(content: aiohttp.StreamReader) -> bytes:
    """The body of an answer, which may come in parts; cut behind MAX_BYTES."""
    body = b""
    while len(body) <= MAX_BYTES and (more := await content.read(MAX_BYTES)):
        body += more
    return body


def _error_code(body: bytes) -> str:
    """The error code of section 5.2 in an answer, which is one of a few words."""
    try:
        code = orjson.loads(body)["error"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""
    known = ("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope")
    return f" ({code})" if code in known else ""


def _parse(body: bytes, asked_at: float) -> _Token:
    """The token of an answer (section 5.1); raises TokenError without quoting it."""
    try:
        answer = orjson.loads(body)
        value, lifetime = answer["access_token"], float(answer.get("expires_in", DEFAULT_LIFETIME))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise TokenError("its answer has no access_token") from None
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise TokenError("its answer has no access_token")
    early = min(RENEWAL_SECONDS, lifetime / 5)
    return _Token(value, asked_at + lifetime - early, asked_at + lifetime)


@lru_cache(maxsize=8)
def client_credentials(client: Client) -> ClientCredentials:
    """The one provider of a process for a client, so that its Kafka connections share a token."""
    return ClientCredentials(client)
