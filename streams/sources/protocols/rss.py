"""RSS and Atom: a feed is asked regularly, and only for what has changed (RFC 9110, section 13)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp

from streams.dates import stated_time
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
from streams.sources.protocols.feed_entries import digest, identified
from streams.sources.protocols.feed_reader import MAX_FEED, FeedReader
from streams.sources.source import Backoff, Position, Ramp, Step

log = logging.getLogger(__name__)
#: Entries whose fingerprints are remembered after they have left the feed.
MAX_REMEMBERED = 1_000
#: Entries whose fingerprints a position has: it is one message, of at most 1 MiB.
MAX_KEPT = 20_000
UNCHANGED = 304
#: Why entries are left out, in the log.
_REASONS = {
    "unreadable": "cannot be read",
    "empty": "have no text",
    "malformed": "are too long",
    "repeated": "are older versions of another one",
}
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
    _left_out: str = ""

    @property
    def key(self) -> str:
        return f"rss/{digest(self.url)}"

    def id_of(self, guid: str) -> str:
        """The id of the report of an entry."""
        return f"rss:{digest(self.url)}:{digest(guid)}"

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
                        response, body = answer
                        about = response.url.with_user(None).with_query(None).with_fragment(None)
                        feed = await self.reader.read(body, response.charset, str(about))
                        step = self._step(feed, response.headers, state)
                        self._report(step.left_out, feed["dropped"])
                        state = step.position or state
                        yield replace(step, position=_fitting(state))
                    await asyncio.sleep(max(self.every, state.get("pause", 0.0)))

    async def _request(
        self, client: aiohttp.ClientSession, state: Position
    ) -> tuple[aiohttp.ClientResponse, bytes] | None:
        """The answer, and the body of the feed; None where it has not changed."""
        names = {"etag": "If-None-Match", "modified": "If-Modified-Since"}
        conditions = {header: state[name] for name, header in names.items() if state.get(name)}
        async with answered(client.get(self.url, headers=conditions)) as response:
            if response.status == UNCHANGED:
                return None
            # One unavailable feed must not end the others, so every status is tried again.
            raise_for(response.status, response.headers, frozenset())
            return response, await body_of(response.content, MAX_FEED)

    def _report(self, left_out: Mapping[str, int], errors: Mapping[str, int]) -> None:
        """Logs which entries are left out and why, unless it is as at the request before."""
        reasons = ", ".join(f"{n} {_REASONS[reason]}" for reason, n in left_out.items())
        kinds = f" ({', '.join(errors)})" if errors else ""
        if reasons and reasons + kinds != self._left_out:
            log.warning("%s: entries are left out: %s%s", self.name, reasons, kinds)
        self._left_out = reasons + kinds

    def _step(self, feed: Mapping[str, Any], headers: Mapping[str, str], state: Position) -> Step:
        """The entries that are new or changed, the oldest first: feeds begin with the newest."""
        seen: dict[str, str] = dict(state.get("seen", {}))
        posts = []
        entries, left_out = identified(feed["entries"], seen)
        if unreadable := sum(feed["dropped"].values()):
            left_out["unreadable"] = unreadable
        for key, entry in entries.items():
            content = digest(entry["text"])
            if seen.get(key) != content:
                posts.append(self._post(entry, key, feed["language"], edited=key in seen))
            seen.pop(key, None)
            seen[key] = content
        kept = dict(list(seen.items())[-max(MAX_REMEMBERED, len(feed["entries"])) :])
        # Entries may be missing in a document that ends early: all of it is asked for again.
        names = {} if feed["broken"] else {"etag": "ETag", "modified": "Last-Modified"}
        return Step(
            items=tuple(posts),
            left_out=left_out,
            position={name: headers.get(header, "") for name, header in names.items()}
            | {"seen": kept, "pause": asked_pause(feed["ttl"])},
            at=max(filter(None, (stated_time(p.created_at).seconds for p in posts)), default=None),
        )

    def _post(self, entry: Mapping[str, Any], key: str, language: object, *, edited: bool) -> Post:
        return Post(
            id=f"rss:{digest(self.url)}:{key}",
            text=entry["text"],
            created_at=entry["at"],
            language=language_code(entry["language"] or language),
            author=entry["author"],
            permalink=entry["permalink"],
            edited=edited,
        )


def _fitting(state: Position) -> Position:
    """The position that is kept; older entries of a larger feed are sent again after a restart."""
    return {**state, "seen": dict(list(state["seen"].items())[-MAX_KEPT:])}


def asked_pause(ttl: object) -> float:
    """Seconds to the next request that a feed asks for in minutes; 0 where it asks for none."""
    minutes = float(ttl) if isinstance(ttl, str) and ttl.isascii() and ttl.isdecimal() else 0.0
    return min(60 * minutes, LONGEST_PAUSE)
