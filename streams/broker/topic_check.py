"""Compares the topics on a broker with the table in `streams.topics`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from streams.settings import Settings
from streams.topics import (
    CONSUMED,
    CURSORS,
    MAX_DEAD_MESSAGE,
    RELEASES,
    SINKS,
    TOPICS,
    Topic,
    admin_client,
    broker_name,
    table_name,
)

_DEAD = tuple(t.dead_letters for t in CONSUMED)


@dataclass(frozen=True, slots=True)
class Difference:
    """A property of a topic that is not as in the table."""

    topic: str
    what: str
    """`topic`, `partitions`, `replication`, `configuration` or the name of a configuration entry."""
    expected: str
    found: str
    problem: str = ""
    """Why the pipeline cannot work with it; empty where it can."""

    def __str__(self) -> str:
        text = f"{self.topic}: {self.what} is {self.found}, expected {self.expected}"
        return f"{text}: {self.problem}" if self.problem else text


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it is on the broker."""

    partitions: int
    replication: int
    """Of the partition with the fewest replicas."""
    configuration: Mapping[str, str]
    unreadable: str = ""
    """Why the broker does not show the configuration."""


async def differences(settings: Settings) -> list[Difference]:
    """Every difference between the table and the broker, in the order of the table."""
    found = await _read(settings)
    return [d for topic in TOPICS for d in compare(topic, found.get(topic.name), settings)]


def compare(topic: Topic[Any], found: TopicState | None, settings: Settings) -> Iterator[Difference]:
    """The differences of one topic, None where the broker lacks it."""
    topic_name = broker_name(settings, topic.name)
    if found is None:
        yield Difference(topic_name, "topic", "there", "missing", "create it with: pvstream topics --create")
        return
    partitions = topic.partitions or settings.partitions
    if found.partitions != partitions:
        problem = "announcements in several partitions have no order" if topic == RELEASES else ""
        yield Difference(topic_name, "partitions", str(partitions), str(found.partitions), problem)
    if found.replication != settings.replication:
        yield Difference(topic_name, "replication", str(settings.replication), str(found.replication))
    if found.unreadable:
        yield Difference(topic_name, "configuration", "readable", found.unreadable)
        return
    expected = topic.configuration(settings.replication)
    insync = "min.insync.replicas"
    if int(found.configuration.get(insync, "1")) > found.replication:
        # Whatever the table says: with acks=all the broker refuses every record.
        expected.setdefault(insync, str(found.replication))
    for name, value in expected.items():
        actual = found.configuration.get(name, "not set")
        if actual != value:
            yield Difference(topic_name, name, value, actual, _problem(topic, name, found, settings))


def _problem(topic: Topic[Any], name: str, found: TopicState, settings: Settings) -> str:
    """Why the pipeline cannot work with a topic whose configuration entry differs; empty where it can."""
    value = found.configuration.get(name, "")
    match name:
        case "cleanup.policy" if topic in (RELEASES, CURSORS) and "delete" in value:
            return "announcements would expire" if topic == RELEASES else "positions of sources would expire"
        case "cleanup.policy" if topic in _DEAD and "compact" in value:
            return "a dead letter without a key would be refused"
        case "max.message.bytes" if topic in _DEAD and int(value) < MAX_DEAD_MESSAGE:
            return "a large dead letter would be refused"
        case "max.message.bytes" if topic in SINKS and int(value) <= settings.max_output_bytes:
            return f"an output of PV_MAX_OUTPUT_BYTES ({settings.max_output_bytes}) would be refused"
        case "min.insync.replicas" if int(value) > found.replication:
            return f"every record is refused, because there are only {found.replication} replicas"
    return ""


async def _read(settings: Settings) -> dict[str, TopicState]:
    """The topics of the table that the broker has, by their names in the table."""
    async with admin_client(settings) as admin:
        # Describing a topic would create it on a broker with auto-creation; listing all does not.
        names = sorted(set(await admin.list_topics()) & {broker_name(settings, t.name) for t in TOPICS})
        if not names:
            return {}
        described = {t["topic"]: t["partitions"] for t in await admin.describe_topics(names)}
        answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, n) for n in names])
    found = {}
    for code, _, _, name, entries, *_ in (resource for answer in answers for resource in answer.resources):
        partitions = described[name]
        replication = min((len(p["replicas"]) for p in partitions), default=0)
        configuration = {entry[0]: str(entry[1]) for entry in entries}
        reason = for_code(code).__name__ if code else ""
        found[table_name(settings, name)] = TopicState(len(partitions), replication, configuration, reason)
    return found
