"""The number of dead letters that were not sent back yet, from the offsets on the broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiokafka import TopicPartition

from streams.broker.groups import committed_offsets
from streams.dead_letters.redrive import REASONS, redrive_group
from streams.settings import Settings
from streams.topics import broker_name, table_name


async def dead_letters_waiting(
    settings: Settings, consumer: Any, admin: Any, topics: Sequence[str]
) -> dict[str, int]:
    """Topic of the table to the number of its letters behind the last redrive of every reason.

    A redrive for one reason alone does not lower it, because the letters are not read.
    """
    described = await admin.describe_topics([broker_name(settings, topic) for topic in topics])
    partitions = [TopicPartition(t["topic"], p["partition"]) for t in described for p in t["partitions"]]
    first, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
    redriven = [
        await committed_offsets(admin, redrive_group(settings, reason), partitions) for reason in REASONS
    ]
    waiting = dict.fromkeys(topics, 0)
    for tp in partitions:
        done = min(offsets[tp] for offsets in redriven)
        waiting[table_name(settings, tp.topic)] += max(0, ends[tp] - max(first[tp], done))
    return waiting
