"""What `pvstream status` reads of the addresses that it is given."""

from __future__ import annotations

from aiohttp import web
from aiohttp.test_utils import TestServer

from streams.monitoring import workers


async def _broken(_: web.Request) -> web.Response:
    return web.Response(text="no JSON")


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * (1 << 16))


async def test_an_answer_without_an_end_is_not_read_to_its_end() -> None:
    app = web.Application()
    app.add_routes([web.get("/a/health/live", _endless), web.get("/b/health/live", _broken)])
    async with TestServer(app) as server:
        endless, broken = await workers.ask_workers([str(server.make_url(path)) for path in ("/a", "/b")])
    assert "an answer of more than" in endless.error
    assert broken.error
