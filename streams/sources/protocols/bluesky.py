"""Bluesky over Jetstream v1: JSON over a WebSocket that replays from a time.

https://github.com/bluesky-social/jetstream-legacy describes it. Compression is left out: it needs a
dictionary of the server's, and the stream of posts is small without it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from streams.intake.items import AuthorDeletion, Deletion, Item, Post
from streams.sources.protocols.connection import answered, interruptions, language_code, session
from streams.sources.source import Backoff, Interrupted, Position, Ramp, SourceFailed, Step

SERVERS = tuple(
    f"wss://jetstream{n}.us-{side}.bsky.network/subscribe" for side in ("east", "west") for n in (1, 2)
)
POSTS = "app.bsky.feed.post"
#: Larger messages the server leaves out. A post has at most 3,000 bytes of text.
MAX_MESSAGE_BYTES = 1 << 20
#: What this side accepts, because a server may ignore the other limit.
MAX_FRAME_BYTES = 16 << 20
#: States of an account whose posts must be deleted. The others, such as `deactivated`, may be temporary.
REMOVED = frozenset({"deleted", "takendown"})
MICROSECONDS = 1_000_000
#: Seconds that the clocks of the server and of this machine may differ.
FUTURE = 60.0


@dataclass(slots=True, kw_only=True)
class Bluesky:
    """Posts, edits and deletions of the whole network. An id is the address of the post,
    at://did/collection/key, so that a post and its deletion have the same.
    """

    servers: Sequence[str] = SERVERS
    """Addresses of the endpoint. After an interruption the next one is used."""
    name: str = "bluesky"
    key: str = "bluesky"
    backoff: Backoff = field(default_factory=lambda: Backoff(network=Ramp(1.0, 60.0)))
    reuses_ids: bool = False
    silence: float = 60.0
    """Seconds without an event after which the source reconnects."""
    rewind: float = 5.0
    """Seconds to go back at each connection: servers differ in the times that they give an event, and a post
    is known to be deleted if its deletion is within them. Repeats have the same id.
    """
    _turn: int = 0
    _refusing: set[str] = field(default_factory=set)
    """The servers whose last answer was a refusal."""

    async def read(self, position: Position | None) -> AsyncGenerator[Step, None]:
        server = self.servers[self._turn % len(self.servers)]
        # The next one is used only after an interruption.
        self._turn += 1
        try:
            async with aclosing(self._read(server, position)) as steps:
                async for step in steps:
                    self._refusing.discard(server)
                    yield step
        except SourceFailed as refusal:
            # One of them may be gone, or blocked by a proxy; the others have the same posts.
            self._refusing.add(server)
            if self._refusing.issuperset(self.servers):
                raise
            raise Interrupted("http", str(refusal)) from None

    async def _read(self, server: str, position: Position | None) -> AsyncGenerator[Step, None]:
        last = _last(position)
        start = None if last is None else last - int(self.rewind * MICROSECONDS)
        with interruptions():
            async with (
                session(self.servers) as client,
                answered(
                    client.ws_connect(
                        server, params=_query(start), max_msg_size=MAX_FRAME_BYTES, autoping=False
                    )
                ) as socket,
            ):
                # A new source begins now, also if the connection ends before the first event.
                yield Step(position={"time_us": _now()} if last is None else None)
                latest_start, known = None, (position or {}).get("server")
                if last is not None and known is not None:
                    latest_start = last + int((0.0 if known == server else self.rewind) * MICROSECONDS)
                async for step in self._steps(socket, server, latest_start):
                    yield step

    async def _steps(
        self, socket: aiohttp.ClientWebSocketResponse, server: str, latest_start: int | None
    ) -> AsyncGenerator[Step, None]:
        """`latest_start`: a whole replay begins at this time or before; None: there is no replay."""
        while True:
            async with asyncio.timeout(self.silence):
                message = await _received(socket)
            if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                raise Interrupted("closed", f"code {socket.close_code}")
            try:
                at, items = read_event(message.data)
            except ValueError:
                yield Step(malformed=1)
                continue
            gap = 0.0 if latest_start is None else max(0.0, (at - latest_start) / MICROSECONDS)
            latest_start = None
            # A time in the future is no place to resume: everything before it would be left out.
            known = at <= _now() + int(FUTURE * MICROSECONDS)
            position = {"time_us": at, "server": server} if known else None
            yield Step(items=items, position=position, at=at / MICROSECONDS, gap=gap)


async def _received(socket: aiohttp.ClientWebSocketResponse) -> aiohttp.WSMessage:
    """The next message that is no ping. What is there already is received without waiting, and the other
    sources would stand still.
    """
    while True:
        await asyncio.sleep(0)
        message = await socket.receive()
        if message.type is aiohttp.WSMsgType.PING:
            await socket.pong(message.data)
        elif message.type is not aiohttp.WSMsgType.PONG:
            return message


def read_event(data: str | bytes) -> tuple[int, tuple[Item, ...]]:
    """The time of an event in microseconds, and what it says of a post or an account; raises ValueError."""
    event = orjson.loads(data)
    try:
        at, did = event["time_us"], event["did"]
        if not isinstance(at, int) or at <= 0 or not isinstance(did, str):
            raise ValueError("no time or no account")
        match event["kind"]:
            case "commit" if event["commit"]["collection"] == POSTS:
                return at, (_post(did, event["commit"]),)
            case "account" if not event["account"]["active"] and event["account"].get("status") in REMOVED:
                return at, (AuthorDeletion(did),)
    except (KeyError, TypeError, AttributeError):
        raise ValueError("not an event") from None
    return at, ()


def _post(did: str, commit: dict[str, Any]) -> Item:
    id_ = f"at://{did}/{POSTS}/{commit['rkey']}"
    if commit["operation"] == "delete":
        return Deletion(id_)
    record = commit["record"]
    if not isinstance(record["text"], str):
        raise ValueError("no text")
    languages = {language_code(tag) for tag in record.get("langs") or ()}
    return Post(
        id=id_,
        text=record["text"],
        created_at=record.get("createdAt"),
        # Who writes in several may state them all with every post: then the text decides.
        language=languages.pop() if len(languages) == 1 else None,
        author=did,
        edited=commit["operation"] == "update",
        permalink=f"https://bsky.app/profile/{did}/post/{commit['rkey']}",
    )


def _query(start: int | None) -> dict[str, str]:
    query = {"wantedCollections": POSTS, "maxMessageSizeBytes": str(MAX_MESSAGE_BYTES)}
    return query if start is None else query | {"cursor": str(start)}


def _last(position: Position | None) -> int | None:
    """The time of the last event, in microseconds."""
    value = (position or {}).get("time_us")
    return value if isinstance(value, int) else None


def _now() -> int:
    return int(time.time() * MICROSECONDS)
