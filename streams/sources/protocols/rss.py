"""RSS and Atom: a feed is asked regularly, and only for what has changed (RFC 9110, section 13)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import aiohttp

from streams.intake.items import Post
from streams.sources.protocols.connection import (
    REQUEST_SECONDS,
    answered,
    body_of,
    interruptions,
    language_code,
    raise_for,
    session,
)
from streams.sources.protocols.feed_reader import MAX_FEED, FeedReader
from streams.sources.source import Backoff, Position, Ramp, Step

log = logging.getLogger(__name__)
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
    reader: FeedReader = field(default_factory=FeedReader, repr=False)
    """The process that reads the feed; several feeds may share it."""
    _dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"rss/{_digest(self.url)}"

    def id_of(self, guid: str) -> str:
        """The id of the report of an entry."""
        return f"rss:{_digest(self.url)}:{_digest(guid)}"

    async def read(self, position: Position | None) -> AsyncGenerator[Step, None]:
        state: Position = position or {}
        with interruptions():
            async with session([self.url]) as client, self.reader:
                while True:
                    async with asyncio.timeout(self.patience):
                        answer = await self._request(client, state)
                    if answer is None:
                        yield Step()
                    else:
                        headers, body = answer
                        feed = await self.reader.read(body)
                        self._report(feed["dropped"])
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
        async with answered(client.get(self.url, headers=conditions)) as response:
            if response.status == UNCHANGED:
                return None
            # One unavailable feed must not end the others, so every status is tried again.
            raise_for(response.status, response.headers, frozenset())
            return response.headers, await body_of(response.content, MAX_FEED)

    def _report(self, dropped: Mapping[str, int]) -> None:
        """Logs which entries are left out, unless they are as at the request before."""
        if dropped and dropped != self._dropped:
            kinds = ", ".join(f"{n} by {kind}" for kind, n in dropped.items())
            log.warning("%s: entries that cannot be read are left out: %s", self.name, kinds)
        self._dropped = dropped

    def _step(self, feed: Mapping[str, Any], headers: Mapping[str, str], state: Position) -> Step:
        """The entries that are new or changed, the oldest first: feeds begin with the newest."""
        seen: dict[str, str] = dict(state.get("seen", {}))
        posts = []
        # Of entries with one id the newest counts: each would be a change of the other at every request.
        entries = {entry["guid"]: entry for entry in reversed(feed["entries"]) if entry["guid"]}
        malformed = len(feed["entries"]) - len(entries) + sum(feed["dropped"].values())
        for guid, entry in entries.items():
            post = self._post(entry, guid, feed["language"])
            digest, content = _digest(guid), _digest(post.text)
            if seen.get(digest) != content:
                posts.append(replace(post, edited=digest in seen))
            seen.pop(digest, None)
            seen[digest] = content
        kept = dict(list(seen.items())[-max(MAX_REMEMBERED, len(feed["entries"])) :])
        # Entries may be missing in a document that ends early: all of it is asked for again.
        names = {} if feed["broken"] else {"etag": "ETag", "modified": "Last-Modified"}
        return Step(
            items=tuple(posts),
            malformed=malformed,
            position={name: headers.get(header, "") for name, header in names.items()}
            | {"seen": kept, "pause": asked_pause(feed["ttl"])},
            at=max((p.created_at.timestamp() for p in posts if p.created_at), default=None),
        )

    def _post(self, entry: Mapping[str, Any], guid: str, language: object) -> Post:
        return Post(
            id=self.id_of(guid),
            text=entry["text"],
            created_at=_moment(entry["at"]),
            language=language_code(language),
            author=entry["author"],
            permalink=entry["link"],
        )


def _fitting(state: Position) -> Position:
    """The position that is kept; older entries of a larger feed are sent again after a restart."""
    return {**state, "seen": dict(list(state["seen"].items())[-MAX_KEPT:])}


def _moment(seconds: int | None) -> datetime | None:
    """The time of an entry; None for one outside of the calendar."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def asked_pause(ttl: object) -> float:
    """Seconds to the next request that a feed asks for in minutes; 0 where it asks for none."""
    minutes = float(ttl) if isinstance(ttl, str) and ttl.isascii() and ttl.isdecimal() else 0.0
    return min(60 * minutes, LONGEST_PAUSE)
