"""An intake without a filter: every post becomes a report, and nothing about its author is kept."""

from __future__ import annotations

from streams.records import Report
from streams.sources.items import Post


class PassAll:
    """Sends id, text and time of every post."""

    def take(self, post: Post) -> Report | None:
        return Report(id=post.id, text=post.text, created_at=post.created_at)

    def author_hash(self, author: str) -> str | None:
        return None
