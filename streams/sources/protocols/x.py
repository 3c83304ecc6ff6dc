"""X over the filtered stream of its API v2: lines of JSON for the posts that match the rules.

Its terms forbid to derive or to store health information about a user, so no author is kept, nor a hash of
one, nor a place, and every post is marked `aggregate_only`. https://docs.x.com/x-api/posts/filtered-stream
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson

from streams.dates import stated_time
from streams.intake.items import Post
from streams.sources.protocols.connection import (
    answered,
    interruptions,
    language_code,
    raise_for,
    read_lines,
    session,
)
from streams.sources.protocols.x_rules import synchronise
from streams.sources.source import Backoff, Interrupted, Position, Ramp, Step

log = logging.getLogger(__name__)
SERVER = "https://api.x.com"
#: What the documentation of the API asks for.
BACKOFF = Backoff(network=Ramp(0.25, 16.0, linear=True), http=Ramp(5.0, 320.0), limited=Ramp(60.0, 900.0))
TERMS = (
    "X: its developer terms forbid to derive or store health information about a user. No author is kept, "
    "reports are marked aggregate_only, and deletions are asked for every day."
)
FIELDS = "created_at,lang,referenced_tweets,edit_history_tweet_ids,note_tweet"
PREFIX = "x:"


@dataclass(slots=True, kw_only=True)
class X:
    """Posts, reposts and edits. The id of an edited post is that of its first version."""

    token: str = field(repr=False)
    rules: Sequence[str] = ()
    server: str = SERVER
    name: str = "x"
    key: str = "x"
    backoff: Backoff = BACKOFF
    reuses_ids: bool = False
    silence: float = 21.0
    """The server sends an empty line every 20 seconds."""
    backfill: int = 0
    """Minutes of posts before a connection that the server sends again, 0 to 5; requires an account with this
    right.
    """
    _synchronised: bool = False
    _alive: float = 0.0
    """When the server last sent something, in seconds since 1970."""

    async def read(self, position: Position | None) -> AsyncGenerator[Step, None]:
        headers = {"Authorization": f"Bearer {self.token}"}
        query = {"tweet.fields": FIELDS} | ({"backfill_minutes": str(self.backfill)} if self.backfill else {})
        with interruptions():
            async with session([self.server], headers) as client:
                if not self._synchronised:
                    url = f"{self.server}/2/tweets/search/stream/rules"
                    deleted, added = await synchronise(client, url, self.rules)
                    log.info("%s: %d rules deleted, %d added", self.name, deleted, added)
                    self._synchronised = True
                url = f"{self.server}/2/tweets/search/stream"
                async with answered(client.get(url, params=query)) as response:
                    raise_for(response.status, response.headers)
                    began = {"alive": round(time.time())} if position is None else None
                    yield Step(gap=self._gap(position), position=began)
                    async with aclosing(read_lines(response.content, self.silence)) as lines:
                        async for line in lines:
                            self._alive = time.time()
                            yield self._step(line)
        raise Interrupted("closed")

    def _gap(self, position: Position | None) -> float:
        """Seconds that the server does not send again."""
        alive = self._alive or (position or {}).get("alive")
        if not isinstance(alive, int | float):
            return 0.0
        return max(0.0, time.time() - alive - 60 * self.backfill)

    def _step(self, line: bytes | None) -> Step:
        position = {"alive": round(self._alive)}
        if line is None:
            return Step(malformed=1, position=position)
        if not line.strip():
            return Step(position=position)
        try:
            post = read_post(line)
        except ValueError:
            return Step(malformed=1)
        return Step(items=(post,), position=position, at=stated_time(post.created_at).seconds)


def read_post(line: bytes) -> Post:
    """The post in a line; raises ValueError for something else, and Interrupted for an error of the stream,
    after which the server closes it.
    """
    content = orjson.loads(line)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    if "errors" in content and "data" not in content:
        raise Interrupted("closed", "an error in the stream")
    try:
        return _post(content["data"])
    except (KeyError, TypeError, AttributeError, IndexError):
        raise ValueError("not a post") from None


def unescaped(text: str) -> str:
    """The text as it was written: the API gives these three characters as entities, and no others."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _post(data: dict[str, Any]) -> Post:
    """A long text is in `note_tweet`, and `text` has its beginning only."""
    text = data.get("note_tweet", {}).get("text") or data["text"]
    versions = data.get("edit_history_tweet_ids") or [data["id"]]
    first = versions[0]
    reposted = [r["id"] for r in data.get("referenced_tweets", ()) if r["type"] == "retweeted"]
    if not isinstance(text, str) or not isinstance(first, str):
        raise ValueError("no text or no id")
    return Post(
        id=PREFIX + first,
        text=unescaped(text),
        created_at=data.get("created_at"),
        language=language_code(data.get("lang")),
        repost_of=PREFIX + reposted[0] if reposted else None,
        edited=len(versions) > 1,
        aggregate_only=True,
    )
