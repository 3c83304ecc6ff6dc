"""RSS and Atom: a feed is asked regularly, and only for what has changed (RFC 9110, section 13)."""

from __future__ import annotations

import asyncio
import hashlib
from calendar import timegm
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from time import struct_time
from typing import Any
from xml.sax import SAXParseException

import aiohttp
import feedparser

from streams.intake.items import Post
from streams.sources.protocols.connection import (
    REQUEST_SECONDS,
    interruptions,
    language_code,
    raise_for,
    session,
)
from streams.sources.protocols.markup import text_of
from streams.sources.source import Backoff, Interrupted, Position, Ramp, Step

#: A larger feed is not read.
MAX_FEED = 16 << 20
#: Entries whose fingerprints are remembered after they have left the feed.
MAX_REMEMBERED = 1_000
#: Entries whose fingerprints a position has: it is one message, of at most 1 MiB.
MAX_KEPT = 20_000
UNCHANGED = 304
#: The longest pause in seconds that a feed can ask for. Some state seconds in the place of minutes.
LONGEST_PAUSE = 24 * 3600.0


@dataclass(slots=True, kw_only=True)
class Rss:
    """One feed. An entry that changes is sent again under its id; one that leaves the feed is not deleted."""

    url: str = field(repr=False)
    """May contain a secret, so it is not in the position, nor in ids."""
    name: str = "rss"
    backoff: Backoff = field(default_factory=lambda: Backoff(network=Ramp(60, 3600), http=Ramp(60, 3600)))
    reuses_ids: bool = False
    every: float = 900.0
    """Seconds between two requests; a feed may ask for more."""
    patience: float = REQUEST_SECONDS
    """Seconds for one answer."""

    @property
    def key(self) -> str:
        return f"rss/{_digest(self.url)}"

    def id_of(self, guid: str) -> str:
        """The id of the report of an entry."""
        return f"rss:{_digest(self.url)}:{_digest(guid)}"

    async def read(self, position: Position | None) -> AsyncGenerator[Step, None]:
        state: Position = position or {}
        with interruptions():
            async with session() as client:
                while True:
                    async with asyncio.timeout(self.patience):
                        answer = await self._request(client, state)
                    if answer is None:
                        yield Step()
                    else:
                        headers, body = answer
                        # Parsing a large feed takes a second.
                        feed = await asyncio.to_thread(_parse, body)
                        step = self._step(feed, headers, state)
                        state = step.position or state
                        yield replace(step, position=_fitting(state))
                    await asyncio.sleep(max(self.every, state.get("pause", 0.0)))

    async def _request(
        self, client: aiohttp.ClientSession, state: Position
    ) -> tuple[Mapping[str, str], bytes] | None:
        """The headers and the body of the feed; None where it has not changed."""
        names = {"etag": "If-None-Match", "modified": "If-Modified-Since"}
        conditions = {header: state[name] for name, header in names.items() if state.get(name)}
        async with client.get(self.url, headers=conditions) as response:
            if response.status == UNCHANGED:
                return None
            # One unavailable feed must not end the others, so every status is tried again.
            raise_for(response.status, response.headers, frozenset())
            body = await response.content.read(MAX_FEED + 1)
            while len(body) <= MAX_FEED and (more := await response.content.read(MAX_FEED)):
                body += more
            if len(body) > MAX_FEED:
                raise Interrupted("http", f"a feed of more than {MAX_FEED} bytes")
            return response.headers, body

    def _step(self, feed: Any, headers: Mapping[str, str], state: Position) -> Step:
        """The entries that are new or changed, the oldest first: feeds begin with the newest."""
        seen: dict[str, str] = dict(state.get("seen", {}))
        posts = []
        entries = {entry.get("id") or entry.get("link"): entry for entry in reversed(feed.entries)}
        # Of entries with one id the newest counts: each would be a change of the other at every request.
        entries = {guid: entry for guid, entry in entries.items() if guid}
        malformed = len(feed.entries) - len(entries)
        for guid, entry in entries.items():
            post = self._post(entry, guid, feed.feed.get("language"))
            digest, content = _digest(guid), _digest(post.text)
            if seen.get(digest) != content:
                posts.append(replace(post, edited=digest in seen))
            seen.pop(digest, None)
            seen[digest] = content
        kept = dict(list(seen.items())[-max(MAX_REMEMBERED, len(feed.entries)) :])
        # Entries may be missing in a document that ends early: all of it is asked for again.
        names = {} if _is_broken(feed) else {"etag": "ETag", "modified": "Last-Modified"}
        return Step(
            items=tuple(posts),
            malformed=malformed,
            position={name: headers.get(header, "") for name, header in names.items()}
            | {"seen": kept, "pause": asked_pause(feed.feed.get("ttl"))},
            at=max((p.created_at.timestamp() for p in posts if p.created_at), default=None),
        )

    def _post(self, entry: Any, guid: str, language: object) -> Post:
        contents = [content.get("value", "") for content in entry.get("content", ())]
        body = max([*contents, entry.get("summary", "")], key=len)
        title = text_of(entry.get("title", ""))
        return Post(
            id=self.id_of(guid),
            text="\n".join(part for part in (title, text_of(body)) if part),
            created_at=_moment(entry.get("published_parsed") or entry.get("updated_parsed")),
            language=language_code(language),
            author=entry.get("author") or None,
            permalink=entry.get("link"),
        )


def _fitting(state: Position) -> Position:
    """The position that is kept; older entries of a larger feed are sent again after a restart."""
    return {**state, "seen": dict(list(state["seen"].items())[-MAX_KEPT:])}


def _parse(body: bytes) -> Any:
    """A parsed feed; raises Interrupted for anything else."""
    try:
        feed = feedparser.parse(BytesIO(body))
    except Exception as error:  # of many kinds, for bytes that are no text
        raise Interrupted("http", f"an answer that cannot be read: {type(error).__name__}") from None
    if not feed.get("version"):
        raise Interrupted("http", "an answer that is no feed")
    return feed


def _moment(parsed: struct_time | None) -> datetime | None:
    """The time of an entry; None for one outside of the calendar, as 0000-00-00 of a database without one."""
    try:
        return datetime.fromtimestamp(timegm(parsed), UTC) if parsed else None
    except (ValueError, OverflowError):
        return None


def _is_broken(feed: Any) -> bool:
    """Whether the document is no well-formed XML."""
    return isinstance(feed.get("bozo_exception"), SAXParseException)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def asked_pause(ttl: object) -> float:
    """Seconds to the next request that a feed asks for in minutes; 0 where it asks for none."""
    minutes = float(ttl) if isinstance(ttl, str) and ttl.isascii() and ttl.isdecimal() else 0.0
    return min(60 * minutes, LONGEST_PAUSE)
