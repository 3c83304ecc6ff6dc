"""Places of records in topics, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol


class Place(Protocol):
    """What has a place in a topic."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


def described(places: Iterable[Place]) -> str:
    """The offsets of some records, without their keys: `posts/0 17-24, posts/2 5`."""
    return ", ".join(
        f"{topic}/{partition} {', '.join(_ranges(offsets))}"
        for topic, partition, offsets in by_partition(places)
    )


def by_partition(places: Iterable[Place]) -> Iterator[tuple[str, int, list[int]]]:
    """For each partition its topic, its number and the offsets in their order."""
    found: dict[tuple[str, int], list[int]] = {}
    for place in places:
        found.setdefault((place.topic, place.partition), []).append(place.offset)
    for (topic, partition), offsets in sorted(found.items()):
        yield topic, partition, offsets


def _ranges(offsets: Sequence[int]) -> Iterator[str]:
    """Ascending numbers as ranges: 1, 2, 3, 7 gives `1-3`, `7`."""
    start = 0
    for i in range(1, len(offsets) + 1):
        if i == len(offsets) or offsets[i] != offsets[i - 1] + 1:
            first, last = offsets[start], offsets[i - 1]
            yield str(first) if first == last else f"{first}-{last}"
            start = i
