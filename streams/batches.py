"""The batches of an inference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streams.items import Item

#: A text with more than this share of the characters of a batch is a batch of its own, so that shorter ones
#: do not wait for it.
LARGE_SHARE = 1 / 4


def bounded_batches(items: Sequence[Item], limit: int) -> Iterator[Sequence[Item]]:
    """The items in turn, in batches whose texts have at most `limit` characters together. A text that is
    longer than LARGE_SHARE of that is alone, and so is a record in whose inference a process has died.

    The size of a batch bounds the time of its inference, which must stay far below the stall deadline.
    """
    batch: list[Item] = []
    size, large = 0, False
    for item in items:
        length = 0 if item.report is None else len(item.report.text)
        is_large = length > LARGE_SHARE * limit or item.record.deaths > 0
        if batch and length and (is_large or large or size + length > limit):
            yield batch
            batch, size = [], 0
        large = is_large if length else large
        batch.append(item)
        size += length
    if batch:
        yield batch
