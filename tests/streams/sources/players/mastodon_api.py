"""Plays a Mastodon server: the public stream, the public timeline, and statuses by their ids."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson
from aiohttp import web

from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.server import LARGE_NUMBER, StreamPlayer
from tests.streams.sources.players.world import Happening, World

TOKEN = "planted-mastodon-token"


class MastodonApi(StreamPlayer):
    """Ids have the time of the first version, as Mastodon's."""

    def __init__(self, world: World, faults: Faults | None = None, rate: float = 2000.0) -> None:
        super().__init__(world, faults, rate)
        self.extra: list[bytes] = []
        self.pages = 0
        self.allowed = 0
        """Requests for statuses that are answered before each one that is refused with 429; 0: all."""
        self._asked = 0
        self._ids: dict[int, str] = {}
        self._shown: dict[str, dict[str, Any]] = {}
        self._applied = 0
        self.app.add_routes(
            [
                web.get("/api/v1/streaming/public", self._stream),
                web.get("/api/v1/streaming/public/local", self._stream),
                web.get("/api/v1/timelines/public", self._timeline),
                web.get("/api/v1/statuses", self._statuses),
            ]
        )

    def status_id(self, happening: Happening) -> str:
        new = str((int(happening.at * 1000) << 16) | (happening.number & 0xFFFF))
        return self._ids.setdefault(happening.number, new)

    def status(self, happening: Happening) -> dict[str, Any]:
        moment = datetime.fromtimestamp(happening.at, UTC).isoformat().replace("+00:00", "Z")
        return {
            "id": self.status_id(happening),
            "created_at": moment,
            "edited_at": moment if happening.kind == "update" else None,
            "content": f"<p>{happening.text}</p>",
            "spoiler_text": "",
            "visibility": "public",
            "language": "en",
            "url": "https://example.org/@someone/1",
            "reblog": None,
            "account": {"id": "9", "acct": "planted-author", "bot": False, "noindex": False},
        }

    def message(self, happening: Happening) -> bytes:
        if happening.kind == "delete":
            return b"event: delete\ndata: %s\n\n" % self.status_id(happening).encode()
        name = b"update" if happening.kind == "create" else b"status.update"
        return b"event: %s\ndata: %s\n\n" % (name, orjson.dumps(self.status(happening)))

    def malformed(self) -> bytes:
        return b'event: update\ndata: {"id": "17"\n\n'

    def keep_alive(self) -> bytes:
        return b":thump\n"

    def clock_jump(self, at: float) -> bytes:
        """A status of a bot, which is left out, with a wrong time."""
        status = self.status(Happening(kind="create", number=LARGE_NUMBER + 1, text="a bot", at=at))
        status["account"]["bot"] = True
        return b"event: update\ndata: %s\n\n" % orjson.dumps(status)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise web.HTTPUnauthorized
        if refusal := self.refusal():
            return refusal
        place = self.furthest = self.world.published if self.connections else 0
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self.begin()
        for message in (b":thump\n\n", *self.extra):
            await response.write(message)
        with suppress(ConnectionError):
            await self.play(request, place, response.write)
        return response

    def expected(self) -> dict[str, str | None]:
        """The id of each report and its last text; None where it is deleted."""
        prefix = f"mastodon:{self.url.removeprefix('http://')}:"
        return {prefix + self._ids[n]: text for n, text in self.world.final.items() if n in self._ids}

    def present(self) -> dict[str, dict[str, Any]]:
        """The statuses that the server shows now, by their ids."""
        published = self.world.happenings[self._applied : self.world.published]
        self._applied = self.world.published
        for happening in published:
            id_ = self.status_id(happening)
            if happening.kind == "delete":
                self._shown.pop(id_, None)
            else:
                self._shown[id_] = self.status(happening)
        return self._shown

    async def _timeline(self, request: web.Request) -> web.Response:
        self.pages += 1
        least, limit = int(request.query.get("min_id", "-1")), int(request.query["limit"])
        page = sorted(
            (status for id_, status in self.present().items() if int(id_) > least),
            key=lambda status: int(status["id"]),
        )
        page = page[-limit:] if least < 0 else page[:limit]
        return web.json_response(page[::-1])

    async def _statuses(self, request: web.Request) -> web.Response:
        self._asked += 1
        if self.allowed and self._asked % (self.allowed + 1) == 0:
            return web.Response(status=429, headers={"X-RateLimit-Reset": "2026-01-01T00:00:00.000000Z"})
        there = self.present()
        return web.json_response([there[id_] for id_ in request.query.getall("id[]") if id_ in there])
