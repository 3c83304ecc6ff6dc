"""Whether the topics of a broker are those of the offsets in a database, and where to continue in them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streams.broker.topic_ids import TopicId
from streams.topics import TopicsError

log = logging.getLogger(__name__)
ADVICE = (
    "Use a new database, or `pvstream store --accept-topics`, which reads it from its beginning into this one"
)


def others_of(kept: Mapping[str, TopicId], found: Mapping[str, TopicId]) -> list[str]:
    """The names of topics that are not those of the database."""
    return [name for name, id_ in found.items() if name in kept and id_.is_other(kept[name])]


def refusal(name: str, kept: Mapping[str, TopicId], found: Mapping[str, TopicId]) -> str:
    """The line for an operator."""
    before, now = kept[name], found[name]
    what = "the topic was created again"
    if before.cluster != now.cluster:
        what = f"this broker is of cluster {now.cluster}, the database was filled from {before.cluster}"
    return f"the offsets of {name} in the database are not of this topic: {what}. {ADVICE}"


def start_of(place: tuple[str, int], kept: int | None, first: int, end: int) -> int:
    """The offset to continue from; raises TopicsError where the topic is not the one of the stored offset."""
    name = f"{place[0]}/{place[1]}"
    if kept is None:
        return first
    if kept > end:
        raise TopicsError(
            f"the database has read {name} up to {kept}, but it ends at {end}: the topic was created again. "
            + ADVICE
        )
    if kept < first:
        log.warning("%s: %d messages were removed from the topic before they were read", name, first - kept)
    return max(kept, first)
