"""The items that a source of live posts yields, and the interface of the intake that receives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from streams.records import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A post as its source published it, or its new version after an edit."""

    id: str
    text: str
    created_at: object = None
    """As the source states it, see `streams.dates.stated_time`."""
    language: str | None = None
    """ISO 639-1 code, where the source states one."""
    author: str | None = None
    """Handle or account id as the source gives it; leaves the process only as a keyed hash."""
    country: str | None = None
    permalink: str | None = None
    repost_of: str | None = None
    """Id of the post that this one repeats, where the source states it."""
    drugs: tuple[str, ...] = ()
    """The drugs that the post is about, where the source states them."""
    indication: str | None = None
    """What they were taken for, where the source states it."""
    edited: bool = False
    """A new version: an earlier one may have been sent."""
    aggregate_only: bool = False
    """The terms of the source forbid keeping the text beyond its coding, and anything about its author."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A post was deleted by its author or by the source."""

    id: str


@dataclass(frozen=True, slots=True)
class AuthorDeletion:
    """An account was deleted, and with it all of its posts."""

    author: str


Item = Post | Deletion | AuthorDeletion


class Intake(Protocol):
    """Filter, privacy and duplicates, between a source and the first topic."""

    def take(self, post: Post) -> Report | None:
        """The report to send, or None where the filter leaves the post out."""

    def has_taken(self, id_: str) -> bool:
        """Whether a report of that id was sent lately."""

    def author_hashes(self, author: str) -> frozenset[str]:
        """The keyed hashes under which reports of `author` may be kept; empty without a key."""

    def forget(self, id_: str) -> None:
        """The report was deleted."""
