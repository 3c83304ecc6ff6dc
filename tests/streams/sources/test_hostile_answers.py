"""What a server may answer to take the processor or the memory of the process: every source stays bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from streams.sources.protocols import connection
from streams.sources.protocols.bluesky import Bluesky
from streams.sources.protocols.connection import LINES_A_TURN, MAX_SKIPPED, read_lines, session
from streams.sources.protocols.mastodon import Mastodon
from streams.sources.protocols.rss import Rss
from streams.sources.protocols.x import X
from streams.sources.protocols.x_compliance import Compliance
from streams.sources.source import Interrupted
from tests.streams.sources.players.server import Player
from tests.streams.sources.players.world import World

#: A second of patience for each thing that is waited for, on a slow machine.
PATIENCE = 60.0
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def server(answer: Answer) -> Player:
    made = Player(World([]))
    made.app.add_routes([web.route("*", "/{any:.*}", answer)])
    return made


def asking(url: str) -> dict[str, AsyncGenerator[Any, None]]:
    """Whatever asks a server and reads its whole answer."""
    mastodon = Mastodon(server=url)
    return {
        "feed": Rss(url=url).read(None),
        "rules": X(token="a", server=url, rules=["a"]).read(None),
        "deleted posts of X": Compliance(token="a", server=url).check(["x:1"], 0.0),
        "deleted posts of Mastodon": mastodon.check(["mastodon:1"], 0.0),
        "timeline": mastodon.read(None),
    }


@pytest.mark.parametrize("name", sorted(asking("http://example.org")))
async def test_an_answer_without_an_end_is_left(name: str) -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        if "streaming" in request.path:
            await asyncio.sleep(PATIENCE)
        while sent < 20 * connection.MAX_BODY:
            await response.write(b"[" * 100_000)
            sent += 100_000
        return response

    async with server(answer) as there, aclosing(asking(there.url)[name]) as steps:
        with pytest.raises(Interrupted, match=r"more than \d+ bytes"):
            async with asyncio.timeout(PATIENCE):
                async for _ in steps:
                    pass
    # Some of it is in buffers, of this process and of the operating system.
    assert sent < 4 * connection.MAX_BODY


@pytest.mark.parametrize("coding", ["gzip", "identity, deflate", "BR", "zstd", "none-that-is-known"])
@pytest.mark.parametrize("name", sorted(asking("http://example.org")))
async def test_a_compressed_answer_is_not_asked_for_and_refused(name: str, coding: str) -> None:
    asked = set[str]()

    async def answer(request: web.Request) -> web.Response:
        asked.add(request.headers["Accept-Encoding"])
        return web.Response(body=b"bomb", headers={"Content-Encoding": coding})

    async with server(answer) as there, aclosing(asking(there.url)[name]) as steps:
        with pytest.raises(Interrupted, match="compressed"):
            await anext(steps)
    assert asked == {"identity"}


async def test_the_status_of_a_compressed_refusal_counts() -> None:
    async def answer(_request: web.Request) -> web.Response:
        headers = {"Content-Encoding": "gzip", "Retry-After": "7"}
        return web.Response(status=429, body=b"bomb", headers=headers)

    async with server(answer) as there, aclosing(Rss(url=there.url).read(None)) as steps:
        with pytest.raises(Interrupted, match="429") as raised:
            await anext(steps)
    assert (raised.value.reason, raised.value.wait) == ("limited", 7.0)


async def turns(done: Callable[[], bool]) -> int:
    """How often the loop gives way to another task until something is done."""
    count = 0
    while not done():
        count += 1
        await asyncio.sleep(0)
    return count


async def test_lines_that_are_there_already_do_not_keep_the_loop() -> None:
    content, read = asyncio.StreamReader(limit=1 << 20), 0
    content.feed_data(b"\n" * 100_000)
    content.feed_eof()

    async def reading() -> None:
        nonlocal read
        async with aclosing(read_lines(content, PATIENCE)) as lines:
            async for _ in lines:
                read += 1

    task = asyncio.create_task(reading())
    assert await turns(task.done) > 100_000 // LINES_A_TURN
    assert read == 100_000
    await task


async def test_a_line_without_an_end_is_left_and_not_kept() -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 20 * MAX_SKIPPED:
            await response.write(b"x" * 500_000)
            sent += 500_000
        return response

    async with server(answer) as there, session([there.url]) as client, client.get(there.url) as response:
        with pytest.raises(Interrupted, match=f"a line of more than {MAX_SKIPPED} bytes") as raised:
            [line async for line in read_lines(response.content, PATIENCE, 100)]
    assert raised.value.reason == "hostile"
    assert sent < 2 * MAX_SKIPPED


async def test_rules_on_pages_without_an_end_are_left() -> None:
    pages = 0

    async def answer(_request: web.Request) -> web.Response:
        nonlocal pages
        pages += 1
        return web.json_response({"data": [], "meta": {"next_token": "again"}})

    async with (
        server(answer) as there,
        aclosing(X(token="a", server=there.url, rules=["a"]).read(None)) as steps,
    ):
        with pytest.raises(Interrupted, match="pages"):
            async with asyncio.timeout(PATIENCE):
                await anext(steps)
    assert pages < 1_000


async def test_messages_and_pings_of_a_socket_do_not_keep_the_loop() -> None:
    sent, got = 300, 0

    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        for _ in range(sent):
            await socket.ping()
            await socket.send_str("{}")
        pongs = 0
        while pongs < sent:
            pongs += (await socket.receive()).type is WSMsgType.PONG
        await socket.send_str("[]")
        async for _ in socket:  # and answers the client that ends the connection
            pass
        return socket

    async def reading(url: str) -> None:
        nonlocal got
        async with aclosing(Bluesky(servers=[url]).read(None)) as steps:
            await anext(steps)
            async for step in steps:
                got += step.malformed
                if got > sent:  # the last one comes after all pongs
                    return

    async with server(answer) as there, asyncio.timeout(PATIENCE):
        task = asyncio.create_task(reading(there.url.replace("http", "ws")))
        assert await turns(task.done) >= sent
        await task
