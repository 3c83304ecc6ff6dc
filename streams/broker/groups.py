"""Asks the broker for consumer groups: their members, and the offsets that they have committed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from aiokafka import TopicPartition
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
    for_code,
)

from streams.settings import Settings
from streams.topics import admin_client

T = TypeVar("T")
#: A new cluster has no coordinator until it has created a topic for offsets, and a moved one reads it first.
COORDINATOR_SECONDS, RETRY_SECONDS = 20.0, 0.2
_PASSING = (GroupCoordinatorNotAvailableError, GroupLoadInProgressError, NotCoordinatorForGroupError)
#: The state of a group whose members have their partitions.
STABLE = "Stable"


class Member(NamedTuple):
    """A member of a consumer group."""

    member_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


async def committed_offsets(
    admin: Any, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The committed offset of each partition, 0 where there is none; raises KafkaError."""
    found = await committed_metadata(admin, group, partitions)
    return {tp: offset for tp, (offset, _) in found.items()}


async def committed_metadata(
    admin: Any, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, str]]:
    """`committed_offsets`, each with the metadata that was committed with it."""
    wanted = list(partitions)
    found = await _retried(lambda: admin.list_consumer_group_offsets(group, partitions=wanted))
    return {tp: (max(0, found[tp].offset), found[tp].metadata) if tp in found else (0, "") for tp in wanted}


async def describe_group(admin: Any, group: str) -> tuple[str, list[Member]]:
    """The state of a group and its members; no members where there is no such group. Raises KafkaError."""

    async def ask() -> Any:
        # One group in a request: of several, aiokafka misreads the answer of a current broker.
        (answer,) = await admin.describe_consumer_groups([group])
        if answer.groups[0][0]:
            raise for_code(answer.groups[0][0])(group)
        return answer.groups[0]

    _, _, state, _, _, members, *_ = await _retried(ask)
    return state, [Member(m[0], m[2].lstrip("/"), _partitions(m[4])) for m in members]


async def have_members(settings: Settings, groups: Iterable[str]) -> bool:
    """Whether a process works in one of these groups; raises KafkaError."""
    async with admin_client(settings) as admin:
        return any([(await describe_group(admin, group))[1] for group in groups])


def _partitions(assignment: bytes) -> tuple[TopicPartition, ...]:
    if not assignment:
        return ()
    return tuple(ConsumerProtocolMemberAssignment.decode(assignment).partitions())


async def _retried(ask: Callable[[], Awaitable[T]]) -> T:
    """What the call answers, asked again while the group has no coordinator."""
    end = time.monotonic() + COORDINATOR_SECONDS
    while True:
        try:
            return await ask()
        except _PASSING:
            if time.monotonic() > end:
                raise
        await asyncio.sleep(RETRY_SECONDS)
