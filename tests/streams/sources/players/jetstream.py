"""Plays Jetstream v1: events of a world from a cursor on, then the live ones."""

from __future__ import annotations

import asyncio
import struct
import time
from contextlib import suppress
from functools import partial

import orjson
from aiohttp import web

from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.server import StreamPlayer
from tests.streams.sources.players.world import Happening, World

DID = "did:plc:eygmaihciaxprqvxpfvl6flk"


def post_id(number: int) -> str:
    return f"at://{DID}/app.bsky.feed.post/{number:013d}"


def commit(happening: Happening) -> bytes:
    """The event as the server writes it."""
    body: dict[str, object] = {
        "rev": "3l3qo2vutsw2b",
        "operation": happening.kind,
        "collection": "app.bsky.feed.post",
        "rkey": f"{happening.number:013d}",
    }
    if happening.kind != "delete":
        record = {
            "$type": "app.bsky.feed.post",
            "createdAt": "2026-03-04T09:15:02.102Z",
            "langs": ["en"],
            "text": happening.text,
        }
        body |= {"record": record, "cid": "bafyreidwaivazkwu67xztlmuobx35hs2lnfh3kolmgfmucldvhd3sgzcqi"}
    return event("commit", happening.at, commit=body)


def event(kind: str, at: float, **body: object) -> bytes:
    return orjson.dumps({"did": DID, "time_us": round(at * 1e6), "kind": kind, **body})


class Jetstream(StreamPlayer):
    """`kept`: seconds of the log that it has; an older cursor is clamped silently."""

    def __init__(
        self, world: World, faults: Faults | None = None, rate: float = 2000.0, kept: float = 3600.0
    ) -> None:
        super().__init__(world, faults, rate)
        self.kept = kept
        self.queries: list[dict[str, str]] = []
        self.extra: list[bytes] = []
        """Messages that come first at the next connection."""
        self.app.add_routes([web.get("/subscribe", self._subscribe)])

    @property
    def endpoint(self) -> str:
        return self.url.replace("http://", "ws://") + "/subscribe"

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        if refusal := self.refusal():
            return refusal
        self.queries.append(dict(request.query))
        place = self._place(request.query.get("cursor"))
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.begin()
        extra, self.extra = self.extra, []
        for message in extra:
            await socket.send_str(message.decode())
        answers = asyncio.create_task(_answer(socket))
        with suppress(ConnectionError, RuntimeError):
            await self.play(request, place, partial(_send, socket))
        answers.cancel()
        return socket

    def _place(self, cursor: str | None) -> int:
        """The first happening to send."""
        log = self.world.happenings[: self.world.published]
        if cursor is None or not log or int(cursor) > log[-1].at * 1e6:
            return len(log)
        oldest = log[-1].at - self.kept
        return next(i for i, h in enumerate(log) if h.at >= oldest and round(h.at * 1e6) >= int(cursor))

    def message(self, happening: Happening) -> bytes:
        return commit(happening)

    def malformed(self) -> bytes:
        return b'{"did": "did:plc:x", "time_us": 17'

    def clock_jump(self, at: float) -> bytes:
        return event("identity", at, identity={})

    def keep_alive(self) -> bytes:
        return event("identity", time.time(), identity={})

    def half(self, message: bytes) -> bytes:
        """Half of a frame (RFC 6455, section 5.2)."""
        frame = struct.pack("!BBH", 0x81, 126, len(message)) + message
        return frame[: len(frame) // 2]


async def _answer(socket: web.WebSocketResponse) -> None:
    """Answers a client that ends the connection, which waits for it."""
    async for _ in socket:
        pass


async def _send(socket: web.WebSocketResponse, message: bytes) -> None:
    await socket.send_str(message.decode())
