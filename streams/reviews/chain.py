"""The chain of decisions: how one is hashed, and whether a chain is whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

import orjson

from streams.codec import encode
from streams.records import FIRST, Decision, Review

D = TypeVar("D", bound=Decision)
#: Fields of an event that the first version did not have.
LATER = frozenset({"start", "end", "drugs"})


class BrokenChain(Exception):
    """A decision was changed, removed or added by another writer; the message names the first place."""


def hash_of(decision: Decision) -> str:
    """SHA-256 in hexadecimal of the record with an empty hash. Fields of later versions are left out where
    they say nothing, so that decisions of earlier versions keep their hashes.
    """
    record = asdict(replace(decision, hash=""))
    if isinstance(decision, Review):
        if record["reading"] == FIRST:
            del record["reading"]
        for state in ("before", "after"):
            kept = record[state].items()
            record[state] = {name: v for name, v in kept if v is not None or name not in LATER}
    return hashlib.sha256(encode(record)).hexdigest()


def linked(decision: D, last: Decision | None) -> D:
    """The decision as the next one of the chain."""
    sequence, previous = (last.sequence + 1, last.hash) if last else (0, "")
    placed = replace(decision, sequence=sequence, previous=previous, hash="")
    return replace(placed, hash=hash_of(placed))


def follows(review: Decision, last: Decision | None) -> bool:
    """Whether a decision is the next one of the chain and was not changed."""
    sequence, previous = (last.sequence + 1, last.hash) if last else (0, "")
    return (review.sequence, review.previous, review.hash) == (sequence, previous, hash_of(review))


def is_late(review: Decision, before: Sequence[Decision]) -> bool:
    """Whether a decision lost its place in a whole chain to one that another process wrote at the same
    moment. It decides nothing; who wrote it has noticed that and written it again behind the other one.
    """
    place = review.sequence
    if place >= len(before) or review.hash != hash_of(review):
        return False
    return review.previous == (before[place - 1].hash if place else "")


def has_place(value: bytes | None, last: Decision | None) -> bool:
    """Whether a record that cannot be read states that it is the next decision: one that was changed, or of a
    later version. Any other one is no part of the chain.
    """
    try:
        stated = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return False
    place = (last.sequence + 1, last.hash) if last else (0, "")
    return isinstance(stated, dict) and (stated.get("sequence"), stated.get("previous")) == place


def verify(reviews: Iterable[D], before: Sequence[Decision] = ()) -> list[D]:
    """The decisions that are next behind `before`, which is a whole chain from its beginning. Repeated
    messages and late decisions are left out. Raises BrokenChain.
    """
    chain, found = list(before), []
    for review in reviews:
        if follows(review, chain[-1] if chain else None):
            chain.append(review)
            found.append(review)
        elif not is_late(review, chain):
            raise BrokenChain(f"decision {review.sequence} does not follow the one before it")
    return found
