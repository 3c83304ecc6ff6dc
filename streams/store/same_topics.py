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


def others_of(stored: Mapping[str, TopicId], present: Mapping[str, TopicId]) -> list[str]:
    """The names of topics that are not those of the database."""
    return [name for name, id_ in present.items() if name in stored and id_.is_other(stored[name])]


def refusal(name: str, stored: Mapping[str, TopicId], present: Mapping[str, TopicId]) -> str:
    """The line for an operator."""
    before, now = stored[name], present[name]
    what = "the topic was created again"
    if before.cluster != now.cluster:
        what = f"this broker is of cluster {now.cluster}, the database was filled from {before.cluster}"
    return f"the offsets of {name} in the database are not of this topic: {what}. {ADVICE}"


def start_of(place: tuple[str, int], stored: int | None, first: int, end: int) -> int:
    """The offset to continue from; raises TopicsError where the topic is not the one of the stored offset."""
    name = f"{place[0]}/{place[1]}"
    if stored is None:
        return first
    if stored > end:
        raise TopicsError(
            f"the database has read {name} up to {stored}, but it ends at {end}: "
            f"the topic was created again. {ADVICE}"
        )
    if stored < first:
        log.warning("%s: %d messages were removed from the topic before they were read", name, first - stored)
    return max(stored, first)
