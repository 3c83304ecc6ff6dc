"""Plays a web server with one feed."""

from __future__ import annotations

import asyncio
import random
from xml.sax.saxutils import escape

from aiohttp import web

from streams.sources.protocols.rss import Rss
from tests.streams.sources.players.faults import LARGE, Fault, Faults
from tests.streams.sources.players.server import LARGE_NUMBER, Player
from tests.streams.sources.players.world import Happening, World

HEAD = (
    '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>Cases</title>'
    "<language>en-us</language>"
)
PUBLISHED = "Wed, 04 Mar 2026 09:15:02 GMT"


def guid(number: int) -> str:
    return f"https://example.org/{number}"


def item(happening: Happening, published: str = PUBLISHED) -> str:
    body = escape(f"<p>{happening.text}</p>")
    return (
        f"<item><guid>{guid(happening.number)}</guid><title>Case {happening.number}</title>"
        f"<link>https://example.org/{happening.number}</link><description>{body}</description>"
        f"<pubDate>{published}</pubDate></item>"
    )


class Feed(Player):
    """Shows the last `shown` entries, the newest first, with an ETag. The world does not go on while its
    faults keep an answer back.
    """

    def __init__(
        self, world: World, rate: float = 2000.0, shown: int = 50, faults: Faults | None = None
    ) -> None:
        super().__init__(world, rate)
        self.shown = shown
        self.faults = faults or Faults(seed=0)
        self.requests: list[dict[str, str]] = []
        self.statuses: list[int] = []
        self.bodies: list[bytes] = []
        """The next answers, instead of the feed."""
        self.app.add_routes([web.get("/feed", self._feed)])

    @property
    def address(self) -> str:
        return f"{self.url}/feed?key=planted-key"

    @property
    def is_over(self) -> bool:
        return super().is_over and sum(self.faults.made.values()) >= self.faults.count

    def expected(self) -> dict[str, str | None]:
        """The id of each report and its last text."""
        source = Rss(url=self.address)
        return {source.id_of(guid(n)): f"Case {n}\n{text}" for n, text in self.world.final.items()}

    def body(self, fault: Fault | None = None) -> bytes:
        latest: dict[int, Happening] = {}
        for happening in self.world.happenings[: self.world.published]:
            latest[happening.number] = happening
        draw = random.Random(self.world.published)
        published = (
            draw.choice(("Sat, 04 Mar 2124 09:15:02 GMT", "yesterday")) if fault == "clock" else PUBLISHED
        )
        items = [item(happening, published) for happening in list(latest.values())[-self.shown :]]
        match fault:
            case "duplicate":
                items *= 2
            case "out_of_order":
                draw.shuffle(items)
            case "large":
                items.append(item(Happening(kind="create", number=LARGE_NUMBER, text="x" * LARGE)))
        return f"{HEAD}{''.join(reversed(items))}</channel></rss>".encode()

    async def _feed(self, request: web.Request) -> web.StreamResponse:
        self.begin()
        self.requests.append(dict(request.headers))
        fault = self.faults.draw()
        if fault in ("429", "503"):
            self.refuse.append((int(fault), {}))
        if refusal := self.refusal():
            self.statuses.append(refusal.status)
            return refusal
        if self.bodies:
            return web.Response(body=self.bodies.pop(0))
        tag = f'"{self.world.published}"'
        status = 304 if fault is None and request.headers.get("If-None-Match") == tag else 200
        self.statuses.append(status)
        body = self.body(fault) if status == 200 else b""
        if fault in ("cut", "mid_line", "malformed", "silence"):
            return await self._broken(request, fault, body)
        self.furthest = self.world.published
        return web.Response(status=status, body=body, headers={"ETag": tag})

    async def _broken(self, request: web.Request, fault: Fault, body: bytes) -> web.StreamResponse:
        """A late answer, none, one that ends early, or one that is complete while its document is not."""
        half, headers = body[: len(body) // 2], {"ETag": f'"{self.world.published}"'}
        if fault == "malformed":
            return web.Response(body=half, headers=headers)
        if fault == "silence":
            await asyncio.sleep(self.faults.silence)
            return web.Response(body=body, headers=headers)
        response = web.StreamResponse(headers={**headers, "Content-Length": str(len(body))})
        if fault == "mid_line":
            await response.prepare(request)
            await response.write(half)
        assert isinstance(request.transport, asyncio.Transport)
        request.transport.abort()
        return response
