"""Where a server may send a source: to public addresses, and never into the network of this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from streams.sources.protocols.bluesky import Bluesky
from streams.sources.protocols.connection import interruptions, session
from streams.sources.protocols.mastodon import Mastodon
from streams.sources.protocols.reach import PublicResolver, Reach, is_public
from streams.sources.protocols.rss import Rss
from streams.sources.protocols.x import X
from streams.sources.protocols.x_compliance import Compliance
from streams.sources.source import Interrupted
from tests.streams.sources.players.server import Player
from tests.streams.sources.players.world import World

PATIENCE = 60.0
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
INNER = (
    "127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.7", "172.20.1.1", "192.168.0.1", "169.254.169.254",
    "100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%eth0", "fc00::1",
    "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.7", "64:ff9b::7f00:1", "64:ff9b:1::1",
    "2002:7f00:1::", "2002:0a00:7::1", "::127.0.0.1", "2001:db8::1",
)  # fmt: skip
OUTER = ("93.184.216.34", "1.1.1.1", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1")


def test_which_addresses_are_public() -> None:
    assert [a for a in INNER if is_public(a)] == []
    assert [a for a in OUTER if not is_public(a)] == []


def sources(url: str) -> dict[str, AsyncGenerator[Any, None]]:
    mastodon = Mastodon(server=url)
    return {
        "bluesky": Bluesky(servers=[url.replace("http", "ws")]).read(None),
        "deleted posts of Mastodon": mastodon.check(["mastodon:1"], 0.0),
        "deleted posts of X": Compliance(token="a", server=url).check(["x:1"], 0.0),
        "feed": Rss(url=url).read(None),
        "mastodon": mastodon.read(None),
        "x": X(token="a", server=url, rules=["a"]).read(None),
    }


def servers(answer: Answer | None) -> tuple[Player, Player, list[str]]:
    """One that the operator named, and a service of this machine with what it was asked."""
    named, inner, asked = Player(World([])), Player(World([])), list[str]()

    async def private(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response([])

    named.app.add_routes([web.route("*", "/{any:.*}", answer or private)])
    inner.app.add_routes([web.route("*", "/{any:.*}", private)])
    return named, inner, asked


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", sorted(sources("http://example.org")))
async def test_no_source_follows_a_redirect_to_a_service_of_this_machine(name: str, status: int) -> None:
    async def redirect(_request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": f"{inner.url}/private"})

    named, inner, asked = servers(redirect)
    async with named, inner, aclosing(sources(named.url)[name]) as steps:
        with pytest.raises(Interrupted, match="not public") as raised:
            async with asyncio.timeout(PATIENCE):
                async for _ in steps:
                    pass
    assert raised.value.reason == "hostile"
    assert asked == []


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST.", "127.0.0.1", "127.0.0.2", "127.1", "2130706433", "0x7f.1", "0.0.0.0",
        "[::1]", "[::ffff:127.0.0.1]", "user:word@localhost",
    ],
)  # fmt: skip
async def test_no_way_to_write_an_inner_address_is_followed(host: str) -> None:
    async def redirect(request: web.Request) -> web.Response:
        if request.path != "/again":
            return web.Response(status=302, headers={"Location": "/again"})
        return web.Response(status=302, headers={"Location": inner.url.replace("127.0.0.1", host)})

    named, inner, asked = servers(redirect)
    async with named, inner, session([named.url]) as client:
        with pytest.raises(Interrupted), interruptions():
            await client.get(named.url)
    assert asked == []


@pytest.mark.parametrize("field", ["upload_url", "download_url"])
async def test_an_inner_address_in_an_answer_is_not_used(field: str) -> None:
    async def job(request: web.Request) -> web.Response:
        urls = {name: f"{named.url}/x" for name in ("upload_url", "download_url")}
        return web.json_response(
            {"data": {"id": "1", "status": "complete", **urls, field: f"{inner.url}/private"}}
        )

    named, inner, asked = servers(job)
    async with named, inner, aclosing(sources(named.url)["deleted posts of X"]) as steps:
        with pytest.raises(Interrupted, match="not public"):
            await anext(steps)
    assert asked == []


async def test_a_server_may_send_to_another_of_its_paths() -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/there":
            return web.Response(text="here")
        return web.Response(status=302, headers={"Location": "/there"})

    named, _, _ = servers(answer)
    async with named, session([named.url]) as client, client.get(named.url) as response:
        assert await response.text() == "here"


class Names(AbstractResolver):
    """Knows the addresses of each name."""

    def __init__(self, **addresses: list[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=a, port=port, family=family, proto=0, flags=0)
            for a in self._addresses[host]
        ]

    async def close(self) -> None: ...


async def test_a_name_leads_to_public_addresses_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    names = Names(feed=["10.0.0.1"], mixed=["10.0.0.1", "1.1.1.1"], inner=["127.0.0.1"], proxy=["10.0.0.2"])
    resolver = PublicResolver(Reach(["http://feed:8080/a?b"]), names)

    async def found(host: str, port: int) -> list[str]:
        return [result["host"] for result in await resolver.resolve(host, port)]

    assert await found("feed", 8080) == ["10.0.0.1"]
    assert await found("feed", 443) == ["10.0.0.1"]  # the same server with TLS
    assert await found("mixed", 80) == ["1.1.1.1"]
    assert await found("proxy", 3128) == ["10.0.0.2"]
    for host, port in (("feed", 22), ("inner", 443), ("proxy", 22)):
        with pytest.raises(Interrupted, match="not public"):
            await found(host, port)


@pytest.mark.parametrize(
    "place", ["localhost", "box.localhost", "10.0.0.7", "2130706433", "0x7f.1", "a.0x7f000001", "metadata"]
)
async def test_a_proxy_is_not_asked_for_an_inner_address(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, proxy, asked = servers(None)
    async with proxy:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", proxy.url)
        async with session(["http://feed.example.org"]) as client:
            await client.get("http://feed.example.org/")
            with pytest.raises(Interrupted), interruptions():
                await client.get(f"http://{place}/latest")
    assert asked == ["/"]
