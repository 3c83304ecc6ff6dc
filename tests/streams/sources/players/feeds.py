"""Plays a web server with one feed."""

from __future__ import annotations

from xml.sax.saxutils import escape

from aiohttp import web

from streams.sources.protocols.rss import Rss
from tests.streams.sources.players.server import Player
from tests.streams.sources.players.world import Happening, World

HEAD = (
    '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>Cases</title>'
    "<language>en-us</language>"
)


def guid(number: int) -> str:
    return f"https://example.org/{number}"


def item(happening: Happening) -> str:
    body = escape(f"<p>{happening.text}</p>")
    return (
        f"<item><guid>{guid(happening.number)}</guid><title>Case {happening.number}</title>"
        f"<link>https://example.org/{happening.number}</link><description>{body}</description>"
        "<pubDate>Wed, 04 Mar 2026 09:15:02 GMT</pubDate></item>"
    )


class Feed(Player):
    """Shows the last `shown` entries, the newest first, with an ETag."""

    def __init__(self, world: World, rate: float = 2000.0, shown: int = 50) -> None:
        super().__init__(world, rate)
        self.shown = shown
        self.requests: list[dict[str, str]] = []
        self.statuses: list[int] = []
        self.bodies: list[bytes] = []
        """The next answers, instead of the feed."""
        self.app.add_routes([web.get("/feed", self._feed)])

    @property
    def address(self) -> str:
        return f"{self.url}/feed?key=planted-key"

    def expected(self) -> dict[str, str | None]:
        """The id of each report and its last text."""
        source = Rss(url=self.address)
        return {source.id_of(guid(n)): f"Case {n}\n{text}" for n, text in self.world.final.items()}

    def body(self) -> bytes:
        latest: dict[int, Happening] = {}
        for happening in self.world.happenings[: self.world.published]:
            latest[happening.number] = happening
        items = [item(happening) for happening in list(latest.values())[-self.shown :]]
        return f"{HEAD}{''.join(reversed(items))}</channel></rss>".encode()

    async def _feed(self, request: web.Request) -> web.Response:
        self.begin()
        self.furthest = self.world.published
        self.requests.append(dict(request.headers))
        if refusal := self.refusal():
            self.statuses.append(refusal.status)
            return refusal
        if self.bodies:
            return web.Response(body=self.bodies.pop(0))
        tag = f'"{self.world.published}"'
        status = 304 if request.headers.get("If-None-Match") == tag else 200
        self.statuses.append(status)
        body = self.body() if status == 200 else None
        return web.Response(status=status, body=body, headers={"ETag": tag})
