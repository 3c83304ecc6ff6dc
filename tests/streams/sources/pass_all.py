"""An intake without a filter: every post becomes a report, and nothing about its author is kept."""

from __future__ import annotations

from streams.dates import stated_time
from streams.intake.items import Post
from streams.records import Report


class PassAll:
    """Sends id, text and time of every post."""

    def take(self, post: Post) -> Report | None:
        return Report(id=post.id, text=post.text, created_at=stated_time(post.created_at).time)

    def has_taken(self, id_: str) -> bool:
        return False

    def author_hashes(self, author: str) -> frozenset[str]:
        return frozenset()

    def forget(self, id_: str) -> None:
        """Nothing is kept."""
