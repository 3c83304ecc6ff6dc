"""The changes that a batch of messages makes in the store: the latest record of each key, and offsets."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streams.broker.topic_ids import TopicId
from streams.codec import BadRecord, adapter, decode
from streams.order import Revision, read_revision, revision_of
from streams.records import Id, Inbound, Report
from streams.store.rows import Row, Rows
from streams.store.tables import REPORTS, SUMMARIES, TABLES, Table
from streams.topics import SUMMARIES as SUMMARIES_TOPIC
from streams.topics import by_name

log = logging.getLogger(__name__)
Offsets = dict[tuple[str, int], int]
"""Topic and partition to the offset of the next message."""


@dataclass(frozen=True, slots=True)
class Read:
    """A message as the store needs it: the id of its report, its revision, and None for a tombstone."""

    id: str
    revision: Revision
    record: Report | None
    table: Table = REPORTS
    """Where it belongs: REPORTS or SUMMARIES."""


@dataclass(slots=True)
class Batch:
    """One transaction."""

    rows: Rows = field(default_factory=Rows)
    replaced: list[str] = field(default_factory=list)
    """Ids of reports whose earlier events and pairs are to be removed."""
    offsets: Offsets = field(default_factory=dict)
    topics: dict[str, TopicId] = field(default_factory=dict)
    """The ids of the topics that the offsets are of from now on."""
    stale: int = 0
    repeated: int = 0

    def tables(self) -> Iterator[tuple[Table, list[Row]]]:
        """The rows of each table of TABLES, in its order: the offsets behind what they are of."""
        offsets: list[Row] = [
            {"topic": topic, "partition": partition, "next_offset": offset}
            for (topic, partition), offset in self.offsets.items()
        ]
        topics: list[Row] = [
            {"topic": name, "cluster_id": id_.cluster, "topic_id": id_.topic}
            for name, id_ in self.topics.items()
        ]
        r = self.rows
        rows = (r.reports, r.events, r.pairs, r.summaries, r.reviews, offsets, topics)
        return zip(TABLES, rows, strict=True)


def read(message: Inbound) -> Read | None:
    """The message, or None where there is nothing to write; raises BadRecord."""
    topic = by_name(message.topic)
    table = SUMMARIES if topic == SUMMARIES_TOPIC else REPORTS
    if message.value is not None:
        if topic.record is None:
            raise BadRecord("no records of a known type")
        record = decode(topic.record, message.value)
        return Read(record.id, revision_of(record), record, table)
    if not message.key:
        return None
    try:
        # Anybody may delete anything: what no report can have as its id, a database need not take either.
        id_ = adapter(Id).validate_python(message.key.decode())
    except ValueError:
        raise BadRecord("the key is no id of a report") from None
    return Read(id_, read_revision(topic, message), None, table)


def read_all(messages: Sequence[Inbound]) -> tuple[list[Read], int]:
    """The messages that can be read, and the number of the others, which are logged."""
    readable, unreadable = [], 0
    for message in messages:
        try:
            parsed = read(message)
        except BadRecord as error:
            unreadable += 1
            log.warning("%s/%d@%d left out: %s", message.topic, message.partition, message.offset, error)
            continue
        if parsed is not None:
            readable.append(parsed)
    return readable, unreadable


def fold(messages: Sequence[Read], stored: Mapping[tuple[str, str], Revision]) -> Batch:
    """The changes that the messages make to reports of which the store has the revisions `stored`, by name of
    the table and id.
    """
    batch = Batch()
    latest: dict[tuple[str, str], Read] = {}
    for message in messages:
        place = message.table.name, message.id
        before = latest[place].revision if place in latest else stored.get(place)
        verdict = "newer" if before is None else message.revision.against(before)
        if verdict == "newer":
            latest[place] = message
        elif verdict == "stale":
            batch.stale += 1
        else:
            batch.repeated += 1
    for place, message in latest.items():
        batch.rows.add(message.id, message.revision, message.record, message.table)
        if message.table is REPORTS and place in stored:
            batch.replaced.append(message.id)
    return batch


def next_offsets(messages: Sequence[Inbound]) -> Offsets:
    """Where to go on after the messages."""
    offsets: Offsets = {}
    for m in messages:
        place = m.topic, m.partition
        offsets[place] = max(offsets.get(place, 0), m.offset + 1)
    return offsets
