"""The state of the whole pipeline, from the broker and from the workers that are named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

from aiokafka import TopicPartition

from models.releases.store import bundled
from streams import topics
from streams.agents.pipeline import STAGES
from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.groups import STABLE, committed_offsets, describe_group
from streams.monitoring.lag import FETCH_BYTES, dead_letters_waiting, read_oldest
from streams.monitoring.workers import WorkerStatus, ask_workers
from streams.rollout.announcements import read_announcements
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import TopicsError, broker_name, group_id

State = Literal["ok", "rebalancing", "stalled", "no worker"]
#: Seconds without an acknowledged record after which a stage with lag is stalled; so is StageStalled.
PATIENCE_SECONDS = 40.0
#: Seconds between two looks at the acknowledged offsets.
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Member:
    """A worker of a stage, as its consumer group lists it."""

    member_id: str
    host: str
    partitions: tuple[int, ...]


@dataclass(slots=True)
class StageStatus:
    """A stage: who works on it, and how far it is behind."""

    stage: str
    source: str
    """The topic that it reads; of several, with commas between them."""
    state: State
    members: list[Member]
    lag_records: int
    lag_seconds: float | None
    """Age of the oldest record that is not acknowledged; None where its age is not known."""
    release: str
    """The announced version, or that of the bundled release."""
    announced: bool


@dataclass(slots=True)
class Status:
    """The whole pipeline; `problems` is empty where every stage has a worker and none is stalled."""

    stages: list[StageStatus]
    dead_letters: dict[str, int]
    """Topic to the letters that were not sent back."""
    workers: list[WorkerStatus]
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Position:
    """Of the partitions of one stage: its acknowledged offsets, and the ends of the topic."""

    starts: dict[TopicPartition, int]
    ends: dict[TopicPartition, int]

    def waiting(self) -> dict[TopicPartition, int]:
        """The offset that is acknowledged next in each partition that has a lag."""
        return {tp: start for tp, start in self.starts.items() if start < self.ends[tp]}


async def read_status(
    settings: Settings, workers: Sequence[str] = (), patience: float = PATIENCE_SECONDS
) -> Status:
    """The present state. A stage with lag is watched until it acknowledges a record, at most `patience`
    seconds (0: not watched); `workers` are addresses of HTTP servers. Raises TopicsError and KafkaError.
    """
    if await topics.is_embedded(settings):
        raise TopicsError("an embedded broker does not list its workers; ask /health/ready of the process")
    await topics.require(settings, (topics.RELEASES, *topics.CONSUMED, *_dead()))
    async with AsyncExitStack() as stack:
        consumer = kafka_consumer(
            settings, group_id=None, auto_offset_reset="earliest", max_partition_fetch_bytes=FETCH_BYTES
        )
        await stack.enter_async_context(running_client(consumer))
        admin = await stack.enter_async_context(topics.admin_client(settings))
        answers = asyncio.create_task(ask_workers(workers))
        stages = await _stages(settings, consumer, admin, patience)
        waiting = await dead_letters_waiting(settings, consumer, admin, [t.name for t in _dead()])
        status = Status(stages, waiting, await answers)
    status.problems = list(_problems(status))
    return status


def _dead() -> list[topics.Topic[Any]]:
    return [topic.dead_letters for topic in topics.CONSUMED]


async def _stages(settings: Settings, consumer: Any, admin: Any, patience: float) -> list[StageStatus]:
    announced = await read_announcements(settings)
    positions = {s.name: await _position(settings, s, consumer, admin) for s in STAGES}
    ages = await _ages(consumer, positions.values())
    groups = {s.name: await _members(settings, s, admin) for s in STAGES}
    lagging = {name: p for name, p in positions.items() if p.waiting() and groups[name][1]}
    stalled = await _stalled(settings, admin, lagging, patience)
    found = []
    for stage in STAGES:
        name, position = stage.name, positions[stage.name]
        group_state, members = groups[name]
        known = [ages[tp] for tp in position.waiting() if tp in ages]
        release = announced.get(name)
        state: State = "ok" if group_state == STABLE else "rebalancing"
        state = "no worker" if not members else "stalled" if name in stalled else state
        found.append(
            StageStatus(
                name, ", ".join(topic.name for topic in stage.sources), state, members,
                lag_records=sum(position.ends[tp] - start for tp, start in position.waiting().items()),
                lag_seconds=max(known, default=None) if position.waiting() else 0.0,
                release=release.version if release else bundled(name).name,
                announced=release is not None,
            )
        )  # fmt: skip
    return found


async def _position(settings: Settings, stage: Stage[Any, Any], consumer: Any, admin: Any) -> _Position:
    described = await admin.describe_topics([broker_name(settings, topic.name) for topic in stage.sources])
    partitions = [TopicPartition(t["topic"], p["partition"]) for t in described for p in t["partitions"]]
    first, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
    committed = await committed_offsets(admin, group_id(settings, stage.name), partitions)
    return _Position({tp: max(first[tp], committed[tp]) for tp in partitions}, dict(ends))


async def _ages(consumer: Any, positions: Iterable[_Position]) -> dict[TopicPartition, float]:
    """For each partition with a lag the age in seconds of its oldest record. Where only markers of
    transactions, which no consumer is given, are left, the position is set to the end.
    """
    positions = list(positions)
    starts = {tp: start for position in positions for tp, start in position.waiting().items()}
    oldest = await read_oldest(consumer, starts)
    for position in positions:
        for tp in position.waiting():
            if tp not in oldest and await consumer.position(tp) >= position.ends[tp]:
                position.starts[tp] = position.ends[tp]
    return {tp: one.age(starts[tp]) for tp, one in oldest.items() if one.timestamp > 0}


async def _members(settings: Settings, stage: Stage[Any, Any], admin: Any) -> tuple[str, list[Member]]:
    """The state of a stage's group, and its members with their partitions of the sources."""
    state, members = await describe_group(admin, group_id(settings, stage.name))
    names = {broker_name(settings, topic.name) for topic in stage.sources}
    return state, [
        Member(m.member_id, m.host, tuple(sorted({tp.partition for tp in m.partitions if tp.topic in names})))
        for m in members
    ]


async def _stalled(
    settings: Settings, admin: Any, lagging: dict[str, _Position], patience: float
) -> set[str]:
    """The stages that acknowledge no record within `patience` seconds."""
    end = time.monotonic() + patience
    waiting = set(lagging) if patience else set()
    while waiting and time.monotonic() < end:
        await asyncio.sleep(LOOK_SECONDS)
        for name in list(waiting):
            starts = lagging[name].starts
            committed = await committed_offsets(admin, group_id(settings, name), starts)
            if any(offset > starts[tp] for tp, offset in committed.items()):
                waiting.discard(name)
    return waiting


def _problems(status: Status) -> Iterable[str]:
    """One line for everything that keeps the pipeline from working."""
    for one in status.stages:
        if one.state == "no worker":
            yield f"{one.stage}: no worker"
        elif one.state == "stalled":
            yield f"{one.stage}: stalled, {one.lag_records} records wait and none is acknowledged"
    for worker in status.workers:
        if worker.error:
            yield f"{worker.address}: no answer: {worker.error}"
        for stage in worker.stalled:
            yield f"{worker.address}: an inference of {stage} does not return"
