"""Mastodon over its streaming API: server-sent events, and REST for what was missed meanwhile.

https://docs.joinmastodon.org/methods/streaming/
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from streams.dates import stated_time
from streams.intake.items import Deletion, Item, Post
from streams.sources.protocols.connection import (
    answered,
    interruptions,
    json_of,
    language_code,
    raise_for,
    read_lines,
    session,
)
from streams.sources.protocols.markup import text_of
from streams.sources.source import Backoff, Interrupted, Position, Ramp, Step

#: Posts on a page of the timeline.
PAGE = 40
#: Ids of statuses begin with their time in milliseconds, and this many bits follow.
SNOWFLAKE_BITS = 16
#: Ids for one request of `check`.
AT_ONCE = 20


@dataclass(slots=True, kw_only=True)
class Mastodon:
    """The public timeline of one server. Ids are the server's own, because its deletions name these."""

    server: str
    """Such as https://mastodon.social."""
    token: str = field(default="", repr=False)
    """Most servers ask for one."""
    local: bool = False
    """Only posts of this server's users."""
    name: str = "mastodon"
    backoff: Backoff = field(default_factory=lambda: Backoff(network=Ramp(1.0, 60.0)))
    reuses_ids: bool = False
    silence: float = 40.0
    """The server sends a comment every 15 seconds."""
    rewind: float = 120.0
    """Seconds to go back in the timeline: posts of other servers get ids by their time, and may come late."""
    missed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at a connection: a deletion may have been missed before it."""

    @property
    def host(self) -> str:
        return urlsplit(self.server).netloc

    @property
    def key(self) -> str:
        return f"mastodon/{self.host}"

    @property
    def prefix(self) -> str:
        """What the ids of its reports begin with."""
        return f"mastodon:{self.host}:"

    async def read(self, position: Position | None) -> AsyncGenerator[Step, None]:
        """The stream is opened first: what arrives while the timeline is read waits in its buffer."""
        last = (position or {}).get("id")
        with interruptions():
            async with session([self.server], self._headers()) as client:
                url = f"{self.server}/api/v1/streaming/public" + ("/local" if self.local else "")
                async with answered(client.get(url)) as response:
                    raise_for(response.status, response.headers)
                    yield Step()
                    if not isinstance(last, str):
                        last = await self._newest(client)
                        yield Step(position={"id": last})
                    else:
                        self.missed.set()
                        async with aclosing(self._timeline(client, last)) as pages:
                            async for step in pages:
                                last = step.position["id"] if step.position else last
                                yield step
                    async with aclosing(self._stream(response, last)) as steps:
                        async for step in steps:
                            yield step
        raise Interrupted("closed")

    async def _newest(self, client: aiohttp.ClientSession) -> str:
        """The id from which a new source begins."""
        page = await _page(client, f"{self.server}/api/v1/timelines/public", [("limit", "1")])
        return str(page[0]["id"]) if page and "id" in page[0] else "0"

    async def _timeline(self, client: aiohttp.ClientSession, last: str) -> AsyncGenerator[Step, None]:
        """The posts after an id, the oldest first."""
        newest, start = last, rewound(last, self.rewind)
        while True:
            query = [("min_id", start), ("limit", str(PAGE)), *([("local", "true")] if self.local else [])]
            page = await _page(client, f"{self.server}/api/v1/timelines/public", query)
            step = self._read(page)
            ids = [status["id"] for status in page if isinstance(status.get("id"), str)]
            if not ids or order(max(ids, key=order)) <= order(start):
                return
            start = max(ids, key=order)
            newest = max(newest, start, key=order)
            yield replace(step, at=None, position={"id": newest})

    async def _stream(self, response: aiohttp.ClientResponse, last: object) -> AsyncGenerator[Step, None]:
        newest = last if isinstance(last, str) else ""
        event, data = "", b""
        async with aclosing(read_lines(response.content, self.silence)) as lines:
            async for line in lines:
                if line is None:
                    yield Step(malformed=1)
                elif line.startswith(b"event:"):
                    event = line[6:].strip().decode(errors="replace")
                elif line.startswith(b"data:"):
                    data = line[5:].strip()
                elif not line.strip():
                    step = self._event(event, data)
                    newest = max([newest, *_ids(step, self.prefix)], key=order)
                    yield replace(step, position={"id": newest} if newest else None)
                    event, data = "", b""

    def _event(self, event: str, data: bytes) -> Step:
        if event == "delete":
            id_ = data.decode(errors="replace").strip('"')
            return Step(items=(Deletion(self.prefix + id_),)) if id_ else Step(malformed=1)
        if event not in ("update", "status.update"):
            return Step()
        try:
            status = orjson.loads(data)
        except orjson.JSONDecodeError:
            return Step(malformed=1)
        return self._read([status])

    def _read(self, statuses: list[Any]) -> Step:
        """The posts, those left out because of what their author asks for, and those that are no statuses."""
        items: list[Item] = []
        excluded = malformed = 0
        at = None
        for status in statuses:
            try:
                if is_excluded(status) or (status.get("reblog") and is_excluded(status["reblog"])):
                    excluded += 1
                    items += self._withdrawn(status)
                    continue
                post = self._post(status)
            except (KeyError, TypeError, AttributeError, ValueError):
                malformed += 1
                continue
            items.append(post)
            at = stated_time(post.created_at).seconds or at
        return Step(items=tuple(items), excluded=excluded, malformed=malformed, at=at)

    def _withdrawn(self, status: dict[str, Any]) -> list[Item]:
        """Of an excluded status the edit that takes back its earlier version: the author may have asked for
        it since.
        """
        if not (status.get("edited_at") and isinstance(status["id"], str)):
            return []
        return [Post(id=self.prefix + status["id"], text="", edited=True)]

    def _post(self, status: dict[str, Any]) -> Post:
        original = status.get("reblog") or status
        warning, id_ = original.get("spoiler_text") or "", status["id"]
        if not isinstance(id_, str):
            raise ValueError("no id")
        return Post(
            id=self.prefix + id_,
            text="\n".join(part for part in (warning, text_of(original["content"])) if part),
            created_at=status.get("created_at"),
            language=language_code(original.get("language")),
            author=str(status["account"]["acct"]),
            permalink=original.get("url"),
            repost_of=self.prefix + original["id"] if status.get("reblog") else None,
            edited=bool(original.get("edited_at")),
        )

    async def check(self, ids: list[str], since: float) -> AsyncGenerator[Sequence[Item], None]:
        """Deletions of the posts that the server no longer shows, and edited ones (since Mastodon 4.3)."""
        with interruptions():
            async with session([self.server], self._headers()) as client:
                for i in range(0, len(ids), AT_ONCE):
                    asked = [id_.removeprefix(self.prefix) for id_ in ids[i : i + AT_ONCE]]
                    there = {s["id"]: s for s in await self._statuses(client, asked) if "id" in s}
                    edits = {id_: stated_time(s.get("edited_at")).seconds for id_, s in there.items()}
                    edited = [s for id_, s in there.items() if (edits[id_] or 0.0) >= since]
                    deleted = [Deletion(self.prefix + id_) for id_ in asked if id_ not in there]
                    yield [*deleted, *self._read([s for s in edited if s.get("edited_at")]).items]

    async def _statuses(self, client: aiohttp.ClientSession, ids: list[str]) -> list[dict[str, Any]]:
        """The statuses that the server shows. Where it limits the requests, often to 300 in five minutes,
        waits: a check that began again each time would never get behind the first of all ids.
        """
        url, query = f"{self.server}/api/v1/statuses", [("id[]", id_) for id_ in ids]
        for attempt in count(1):
            try:
                return await _page(client, url, query)
            except Interrupted as interruption:
                if interruption.reason != "limited":
                    raise
                await asyncio.sleep(self.backoff.seconds(interruption, attempt))
        raise AssertionError

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def is_excluded(status: dict[str, Any]) -> bool:
    """Whether a bot wrote it, its author asks not to be indexed, or it is not public."""
    account = status["account"]
    private = status.get("visibility", "public") not in ("public", "unlisted")
    return bool(account.get("bot") or account.get("noindex") or private)


def order(id_: str) -> tuple[int, str]:
    """Later ids are greater: they are numbers of any length."""
    return len(id_), id_


def rewound(id_: str, seconds: float) -> str:
    """The least id of a time before that of `id_`, or before now if that is in the future; `id_` itself on
    servers whose ids are no times.
    """
    if not (id_.isascii() and id_.isdecimal()):
        return id_
    milliseconds = min(int(id_) >> SNOWFLAKE_BITS, round(time.time() * 1000))
    return str(max(0, milliseconds - round(seconds * 1000)) << SNOWFLAKE_BITS)


def _ids(step: Step, prefix: str) -> list[str]:
    return [item.id.removeprefix(prefix) for item in step.items if isinstance(item, Post)]


async def _page(
    client: aiohttp.ClientSession, url: str, query: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """The answer, a JSON array of objects; raises Interrupted."""
    content = await json_of(client.get(url, params=query), frozenset())
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        raise Interrupted("http", "an answer that is not readable")
    return content
