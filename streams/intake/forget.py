"""Deletes reports by hand or for a source: a tombstone under the report's key, which each stage passes on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import orjson

from streams.broker.consumer import send_all
from streams.broker.ranges import Progress, read_chunks
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import EVENTS, INPUTS, SUMMARIES, Topic, TopicsError, partition_counts

#: Topics that state the author of a report: final records are kept for longer than the reports themselves.
SEARCHED: tuple[Topic[Any], ...] = (*INPUTS, EVENTS, SUMMARIES)


async def forget(settings: Settings, ids: Collection[str], topics: Iterable[Topic[Any]] = INPUTS) -> None:
    """Sends a tombstone for each id to the input topics, from where the stages pass it on. An unknown id is
    no error. Raises TopicsError where the broker lacks the topics.
    """
    await _send(settings, [id_.encode() for id_ in ids], topics)


async def _send(settings: Settings, keys: Sequence[bytes], topics: Iterable[Topic[Any]]) -> None:
    existing = await partition_counts(settings)
    names = [t.name for t in topics if t.name in existing]
    if not names:
        raise TopicsError("the broker has none of the topics; create them with: pvstream topics --create")
    await send_all(settings, ((name, key, None) for key in keys for name in names))


async def forget_authors(
    settings: Settings, hashes: Collection[str], progress: Progress = lambda done, total: None
) -> list[str]:
    """Forgets all reports of the authors with these hashes, and returns their ids.

    It reads whole topics, so a source should collect the accounts that are deleted, and call it now and then.
    """
    existing = await partition_counts(settings)
    wanted = {hash_.encode() for hash_ in hashes}
    keys: set[bytes] = set()
    for topic in (t for t in SEARCHED if t.name in existing and wanted):
        async for records in read_chunks(settings, topic, "beginning", "end", progress):
            keys |= {r.key for r in records if r.key is not None and _is_by(r, wanted)}
    if keys:
        await _send(settings, sorted(keys), INPUTS)
    return [key.decode(errors="replace") for key in sorted(keys)]


def _is_by(record: Inbound, wanted: Collection[bytes]) -> bool:
    value = record.value
    if value is None or not any(hash_ in value for hash_ in wanted):
        return False
    # The hash may also occur in the text, where it is not the author's.
    try:
        author = orjson.loads(value).get("author")
    except (orjson.JSONDecodeError, AttributeError):
        return False
    return isinstance(author, str) and author.encode() in wanted
