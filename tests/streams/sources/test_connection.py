from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from email.utils import formatdate

import aiohttp
import pytest
from aiohttp import web

from streams.sources.protocols import connection
from streams.sources.protocols.bluesky import Bluesky
from streams.sources.protocols.connection import (
    asked_wait,
    interruptions,
    language_code,
    raise_for,
    read_lines,
    session,
)
from streams.sources.protocols.mastodon import Mastodon
from streams.sources.protocols.x import X
from streams.sources.source import Backoff, Interrupted, Ramp, Source, SourceFailed
from tests.streams.sources.players.server import Player
from tests.streams.sources.players.world import World


class Chunks(Player):
    """Answers with chunks, then stays open."""

    def __init__(self, *chunks: bytes) -> None:
        super().__init__(World([]))
        self.chunks = chunks
        self.app.add_routes([web.get("/", self._answer)])

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in self.chunks:
            await response.write(chunk)
            await asyncio.sleep(0.01)
        return response


async def lines_of(*chunks: bytes, max_line: int = 100) -> list[bytes | None]:
    async with Chunks(*chunks) as server, session([server.url]) as client, client.get(server.url) as response:
        return [line async for line in read_lines(response.content, 5.0, max_line)]


async def test_lines_are_put_together_and_incomplete_or_too_long_ones_are_dropped() -> None:
    assert await lines_of(b"a\nb", b"c\r\n\n", b"\nd") == [b"a", b"bc\r", b"", b""]
    found = await lines_of(b"x" * 60, b"x" * 60 + b"\nab\n", b"y" * 101 + b"\ncd\n")
    assert found == [None, b"ab", None, b"cd"]


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (503, {"Retry-After": "7"}, 7.0),
        (503, {"x-rate-limit-reset": "9999999999"}, None),
        (503, {"Retry-After": "soon"}, None),
        (500, {}, None),
    ],
)
def test_a_status_may_ask_to_wait(status: int, headers: dict[str, str], wait: float | None) -> None:
    with pytest.raises(Interrupted) as raised:
        raise_for(status, headers)
    assert (raised.value.reason, raised.value.wait) == ("http", wait)


def test_the_end_of_a_limit_is_understood_in_every_format() -> None:
    end = round(time.time()) + 100
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    for headers in (
        {"x-rate-limit-reset": str(end)},
        {"X-RateLimit-Reset": iso},
        {"Retry-After": formatdate(end, usegmt=True)},
    ):
        wait = asked_wait(429, headers)
        assert wait is not None
        assert 97 < wait <= 101


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    with pytest.raises(SourceFailed):
        raise_for(status, {})


def test_the_errors_of_a_connection_quote_nothing() -> None:
    for error in (aiohttp.ClientError("planted"), OSError("planted"), TimeoutError("planted")):
        with pytest.raises(Interrupted) as raised, interruptions():
            raise error
        assert "planted" not in str(raised.value)
        assert raised.value.__suppress_context__


def test_waits_grow_to_a_limit_with_jitter_and_what_is_asked_is_a_lower_bound() -> None:
    backoff = Backoff(network=Ramp(1.0, 60.0), longest=100.0, jitter=0.2)
    waits = [backoff.seconds(Interrupted("network"), n, draw=0.0) for n in (1, 2, 3, 7, 1000)]
    assert waits == [1, 2, 4, 60, 60]
    assert backoff.seconds(Interrupted("network"), 1, draw=1.0) == pytest.approx(0.8)
    assert 10 <= backoff.seconds(Interrupted("http", wait=10), 1) <= 12
    assert backoff.seconds(Interrupted("limited", wait=1e9), 1, draw=0.0) == 100


@pytest.mark.parametrize("asked", [-5.0, 0.0, 0.9])
def test_who_asks_for_no_wait_is_not_asked_again_at_once(asked: float) -> None:
    backoff = Backoff()
    waits = [backoff.seconds(Interrupted("limited", wait=asked), n, draw=0.0) for n in (1, 2, 50)]
    assert waits == [60, 120, 900]
    assert backoff.seconds(Interrupted("http", wait=asked), 1, draw=0.0) == 5


def test_languages_of_posts() -> None:
    codes = [language_code(v) for v in ("en", "pt-BR", "en_US", "und", "", None, 5)]
    assert codes == ["en", "pt", "en", None, None, None, None]


@pytest.mark.parametrize("name", ["bluesky", "mastodon", "x"])
async def test_a_server_that_says_nothing_is_left(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.1)
    closed = asyncio.Event()

    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        closed.set()

    server = await asyncio.start_server(says_nothing, "127.0.0.1", 0)
    place = "{}:{}".format(*server.sockets[0].getsockname())
    sources: dict[str, Source] = {
        "bluesky": Bluesky(servers=[f"ws://{place}"]),
        "mastodon": Mastodon(server=f"http://{place}"),
        "x": X(token="a", server=f"http://{place}", rules=["a"]),
    }
    with pytest.raises(Interrupted) as raised:
        async with asyncio.timeout(120), aclosing(sources[name].read(None)) as steps:
            await anext(steps)
    assert raised.value.reason == "silent"
    server.close()
    await closed.wait()
