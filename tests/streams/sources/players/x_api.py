"""Plays X's filtered stream, its rules and its compliance jobs."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Any

import orjson
from aiohttp import web

from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.server import StreamPlayer
from tests.streams.sources.players.world import Happening, World

TOKEN = "planted-x-token"
#: Happenings that a backfill sends again by default.
REPEATED = 300
FIRST = 1_400_000_000_000_000_000


def tweet_id(number: int) -> str:
    """The id of a post's first version."""
    return str(FIRST + 2 * number)


def tweet(happening: Happening) -> dict[str, Any]:
    """The post as the API writes it. An edit is a post of its own that names the first version."""
    first, edited = tweet_id(happening.number), str(FIRST + 2 * happening.number + 1)
    is_edit = happening.kind == "update"
    return {
        "id": edited if is_edit else first,
        "text": happening.text,
        "author_id": "2244994945",
        "created_at": "2026-03-04T09:15:02.000Z",
        "lang": "en",
        "edit_history_tweet_ids": [first, edited] if is_edit else [first],
    }


class XApi(StreamPlayer):
    """With backfill a connection begins before the place where the last one ended, else with what is new."""

    def __init__(
        self, world: World, faults: Faults | None = None, rate: float = 2000.0, repeated: int = REPEATED
    ) -> None:
        """`repeated`: happenings that a backfill sends again."""
        super().__init__(world, faults, rate)
        self._repeated = repeated
        self.rules: dict[str, str] = {}
        self.queries: list[dict[str, str]] = []
        self.extra: list[bytes] = []
        self.uploads: dict[str, list[str]] = {}
        self.unauthorised = 0
        self.last_line_end = b"\n"
        """Of the result of a compliance job."""
        self.busy: list[tuple[int, dict[str, str]]] = []
        """Statuses and headers of the next answers to a question for the state of a job."""
        self._numbers = count()
        stream = "/2/tweets/search/stream"
        self.app.add_routes(
            [
                web.get(stream, self._stream),
                web.get(f"{stream}/rules", self._list_rules),
                web.post(f"{stream}/rules", self._change_rules),
                web.post("/2/compliance/jobs", self._new_job),
                web.get("/2/compliance/jobs/{id}", self._job),
                web.put("/signed/{id}", self._upload),
                web.get("/signed/{id}", self._download),
            ]
        )

    def message(self, happening: Happening) -> bytes:
        """Deletions are not in the stream."""
        if happening.kind == "delete":
            return b"\r\n"
        return orjson.dumps({"data": tweet(happening), "matching_rules": [{"id": "1"}]}) + b"\r\n"

    def malformed(self) -> bytes:
        return b'{"data": {"id": "17"\r\n'

    def keep_alive(self) -> bytes:
        return b"\r\n"

    def clock_jump(self, at: float) -> bytes:
        return b"\r\n"

    def _check(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.unauthorised += 1
            raise web.HTTPUnauthorized

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self._check(request)
        if refusal := self.refusal():
            return refusal
        self.queries.append(dict(request.query))
        response = web.StreamResponse()
        await response.prepare(request)
        self.begin()
        for message in self.extra:
            await response.write(message)
        backfill = "backfill_minutes" in request.query
        place = max(0, self.furthest - self._repeated) if backfill else self.world.published
        with suppress(ConnectionError):
            await self.play(request, place, response.write)
        return response

    async def _list_rules(self, request: web.Request) -> web.Response:
        self._check(request)
        data = [{"id": id_, "value": value} for value, id_ in self.rules.items()]
        return web.json_response({"data": data, "meta": {}} if data else {"meta": {}})

    async def _change_rules(self, request: web.Request) -> web.Response:
        self._check(request)
        body = await request.json()
        for id_ in body.get("delete", {}).get("ids", ()):
            self.rules = {value: i for value, i in self.rules.items() if i != id_}
        errors = []
        for rule in body.get("add", ()):
            if rule["value"].count("(") != rule["value"].count(")"):
                errors.append({"title": "UnprocessableEntity", "value": rule["value"]})
            else:
                self.rules[rule["value"]] = str(next(self._numbers))
        return web.json_response({"meta": {}} | ({"errors": errors} if errors else {}))

    async def _new_job(self, request: web.Request) -> web.Response:
        self._check(request)
        assert (await request.json())["type"] == "tweets"
        return web.json_response({"data": self._state(str(next(self._numbers)), "created")})

    async def _upload(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers
        self.uploads[request.match_info["id"]] = (await request.text()).split()
        return web.Response()

    async def _job(self, request: web.Request) -> web.Response:
        self._check(request)
        if self.busy:
            status, headers = self.busy.pop(0)
            return web.Response(status=status, headers=headers)
        id_ = request.match_info["id"]
        return web.json_response(
            {"data": self._state(id_, "complete" if id_ in self.uploads else "in_progress")}
        )

    async def _download(self, request: web.Request) -> web.Response:
        gone = {
            tweet_id(h.number) for h in self.world.happenings[: self.world.published] if h.kind == "delete"
        }
        asked = self.uploads[request.match_info["id"]]
        lines = [{"id": id_, "action": "delete", "reason": "deleted"} for id_ in asked if id_ in gone]
        body = b"\n".join(map(orjson.dumps, lines))
        return web.Response(body=body + self.last_line_end if lines else b"")

    def _state(self, id_: str, status: str) -> dict[str, str]:
        signed = f"{self.url}/signed/{id_}?signature=planted-signature"
        return {"id": id_, "status": status, "upload_url": signed, "download_url": signed}
