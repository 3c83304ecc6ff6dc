"""Fills the window of duplicates from the topic that the reports went to, when a source starts."""

from __future__ import annotations

from typing import Any

from streams.broker.ranges import Progress, read_chunks
from streams.codec import BadRecord
from streams.input_reports import read_report
from streams.intake.duplicates import Sighting, Window
from streams.intake.masking import unmasked_parts
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import Topic, partition_counts


async def rebuild(
    window: Window, settings: Settings, topic: Topic[Any], progress: Progress = lambda done, total: None
) -> None:
    """Takes over the decisions in the last records of the topic, as many as the window has places. Raises
    TopicsError where the broker lacks the topic.
    """
    partitions = (await partition_counts(settings)).get(topic.name, 1)
    most = -(-settings.duplicate_reports // partitions)
    deleted: dict[bytes | None, int] = {}
    async for records in read_chunks(settings, topic, "beginning", "end", progress, most):
        for record in records:
            _learn(window, record, deleted)


def _learn(window: Window, record: Inbound, deleted: dict[bytes | None, int]) -> None:
    """`deleted`: in which partition each key was deleted last. Partitions are not read in the order of their
    records, and a key moves to another one where partitions are added.
    """
    if record.value is None:
        window.forget((record.key or b"").decode(errors="replace"))
        deleted[record.key] = record.partition
        return
    if deleted.get(record.key, record.partition) != record.partition:
        return
    try:
        report = read_report(record.value)
    except BadRecord:
        return
    window.learn(
        report.id, unmasked_parts(report.text, report.masked),
        Sighting(report.duplicate_of, "", report.similar_to, report.reworded), record.timestamp,
        keeps_text=not report.aggregate_only,
    )  # fmt: skip
