"""The table of all topics, and functions that check and create them on a broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, NodeNotReadyError, TopicAlreadyExistsError, for_code

from streams.records import (
    Announcement,
    Assignment,
    CodedReport,
    Cursor,
    Decision,
    ExpandedReport,
    Lease,
    Report,
    Review,
    Signal,
    SignalDecision,
    Summary,
    TaggedReport,
)
from streams.settings import Settings
from streams.uninterrupted import uninterrupted

R_co = TypeVar("R_co", covariant=True)

DAY = 24 * 3600 * 1000
#: Milliseconds of a segment. The broker deletes whole segments, so a record may stay for this time beyond its
#: retention; with Kafka's default it would be a week.
SEGMENT_MS = DAY
#: Time after which the broker must begin to remove what a tombstone deletes, or an edit replaces.
DELETED_MS = DAY // 4
#: A dead letter is the source record with more headers, so its topic must accept larger messages than any
#: source topic.
MAX_MESSAGE = 1 << 20
MAX_DEAD_MESSAGE = 2 << 20
#: Seconds until every broker should list a new topic.
LISTED_SECONDS = 30.0
#: Seconds that a started admin client waits for the broker to name a node, and between two questions.
NODE_SECONDS, _AGAIN_SECONDS = 20.0, 0.2
#: Of two replicas both would have to be up.
REPLICAS_FOR_TWO_INSYNC = 3


class TopicsError(Exception):
    """The broker lacks topics, or refuses to create them; the message is one line for an operator."""


@dataclass(frozen=True, slots=True)
class Topic(Generic[R_co]):
    """A topic, the type of its records (None: any bytes), and the properties it is created with."""

    name: str
    """Without PV_PREFIX; `broker_name` adds it."""
    record: type[R_co] | None
    partitions: int | None = None
    """None: as many as PV_PARTITIONS says."""
    retention_ms: int = 7 * DAY
    compacted: bool = False
    max_message_bytes: int = MAX_MESSAGE
    keyed: bool = True
    """Every record has a key; the deletion of a report then removes the records before it."""
    broker_time: bool = False
    """The time of a message is that at which the broker got it."""
    others: tuple[type[R_co], ...] = ()
    """Further types of its records."""

    @property
    def kinds(self) -> tuple[type[R_co], ...]:
        """The types of its records."""
        return (*((self.record,) if self.record else ()), *self.others)

    @property
    def dead_letters(self) -> Topic[Any]:
        """The topic for records of this one that cannot be processed; it keeps them for 30 days, so that
        somebody can look at them.
        """
        name = f"{self.name}.dead"
        return Topic(name, None, 1, 30 * DAY, max_message_bytes=MAX_DEAD_MESSAGE, keyed=False)

    @property
    def cleanup(self) -> str:
        """Kafka's `cleanup.policy`."""
        if self.compacted:
            return "compact"
        return "compact,delete" if self.keyed else "delete"

    def configuration(self, replication: int = 1) -> dict[str, str]:
        """Kafka's topic configuration. With three replicas or more a record is confirmed once two have it, so
        one broker can fail without a loss and without stopping the pipeline.
        """
        entries = {
            "cleanup.policy": self.cleanup,
            "retention.ms": "-1" if self.compacted else str(self.retention_ms),
            "max.message.bytes": str(self.max_message_bytes),
        }
        if self.broker_time:
            entries["message.timestamp.type"] = "LogAppendTime"
        if not self.compacted:
            entries["segment.ms"] = str(SEGMENT_MS)
        if not self.compacted and self.keyed:
            # A tombstone stays as long as anything that was made from the report before it.
            entries |= {
                "max.compaction.lag.ms": str(DELETED_MS),
                "delete.retention.ms": str(self.retention_ms),
            }
        return entries | ({"min.insync.replicas": "2"} if replication >= REPLICAS_FOR_TWO_INSYNC else {})


POSTS = Topic("posts", Report)
SENTENCES = Topic("sentences", Report)
QUESTIONS = Topic("questions", Report)
EXPANDED = Topic("sentences.expanded", ExpandedReport)
TAGGED = Topic("sentences.tagged", TaggedReport)
MENTIONS = Topic("mentions", TaggedReport)
EVENTS = Topic("events", CodedReport, retention_ms=30 * DAY)
SUMMARIES = Topic("summaries", Summary, retention_ms=30 * DAY)
RELEASES = Topic("releases", Announcement, partitions=1, compacted=True)
CURSORS = Topic("cursors", Cursor, partitions=1, compacted=True)
SIGNALS = Topic("signals", Signal, compacted=True)
#: Append only: a chain of hashes, so it has one partition, and nothing of it is ever removed.
REVIEWS: Topic[Decision] = Topic(
    "reviews", Review, partitions=1, retention_ms=-1, keyed=False, others=(SignalDecision, Assignment)
)
#: Its order decides who gets an event, so it has one partition.
LEASES = Topic("leases", Lease, partitions=1, retention_ms=DAY, keyed=False, broker_time=True)

INPUTS: tuple[Topic[Report], ...] = (POSTS, SENTENCES, QUESTIONS)
CONSUMED: tuple[Topic[Any], ...] = (*INPUTS, EXPANDED, TAGGED, MENTIONS)
SINKS: tuple[Topic[Any], ...] = (EXPANDED, TAGGED, MENTIONS, EVENTS, SUMMARIES)
TOPICS: tuple[Topic[Any], ...] = (
    *CONSUMED, EVENTS, SUMMARIES, RELEASES, CURSORS, SIGNALS, REVIEWS, LEASES,
    *(t.dead_letters for t in CONSUMED),
)  # fmt: skip


def broker_name(settings: Settings, name: str) -> str:
    """The name on the broker of a topic that the table, a record or a user calls `name`."""
    return settings.prefix + name


def table_name(settings: Settings, name: str) -> str:
    """The opposite of `broker_name`."""
    return name.removeprefix(settings.prefix)


def group_id(settings: Settings, name: str) -> str:
    """The consumer group of a stage, or of another part of pvstream."""
    return f"{settings.prefix}pv-{name}"


def request_bytes(settings: Settings) -> int:
    """The size of the largest message that a producer of outputs and dead letters takes; PV_MAX_OUTPUT_BYTES
    does not count the key and the headers.
    """
    return max(2 * MAX_DEAD_MESSAGE, settings.max_output_bytes + MAX_MESSAGE)


def by_name(name: str) -> Topic[Any]:
    """The topic of that name; raises TopicsError for a name that is not in the table."""
    for topic in TOPICS:
        if topic.name == name:
            return topic
    raise TopicsError(f"no topic {name!r}; the topics are {', '.join(t.name for t in TOPICS)}")


async def start_admin(admin: Any) -> None:
    """Starts an aiokafka admin client and waits until the broker names a node. A Kafka that has just started,
    or a busy one, may name none at first, and the client would fail with its first request. Raises
    NodeNotReadyError where none is named for NODE_SECONDS, and as the client does.
    """
    await admin.start()
    client, end = admin._client, time.monotonic() + NODE_SECONDS
    while client.get_random_node() is None:
        if time.monotonic() > end:
            raise NodeNotReadyError("the broker names no node")
        await asyncio.sleep(_AGAIN_SECONDS)
        await client.force_metadata_update()


@asynccontextmanager
async def admin_client(settings: Settings) -> AsyncIterator[Any]:
    """An aiokafka admin client for the block."""
    client = AIOKafkaAdminClient(**settings.client())
    try:
        await uninterrupted(start_admin(client))
        yield client
    finally:
        await uninterrupted(client.close())


async def partition_counts(settings: Settings) -> dict[str, int]:
    """Name in the table to number of partitions, for every topic of the table that the broker has."""
    async with admin_client(settings) as admin:
        # Describing a topic would create it on a broker with auto-creation; listing all does not.
        names = set(await admin.list_topics()) & {broker_name(settings, t.name) for t in TOPICS}
        described = await admin.describe_topics(sorted(names)) if names else []
    return {table_name(settings, t["topic"]): len(t["partitions"]) for t in described}


async def is_embedded(settings: Settings) -> bool:
    """Whether the broker is an embedded one, of this or another process; a full partition drops records."""
    async with admin_client(settings) as admin:
        cluster = await admin.describe_cluster()
    return str(cluster["cluster_id"]).startswith("mockCluster")


async def create(settings: Settings, topics: tuple[Topic[Any], ...] = TOPICS) -> list[str]:
    """Creates the missing topics and waits for them; returns their names. Raises TopicsError."""
    existing = await partition_counts(settings)
    missing = [t for t in topics if t.name not in existing]
    if not missing:
        return []
    new = [new_topic(t, settings) for t in missing]
    async with admin_client(settings) as admin:
        response = await admin.create_topics(new, timeout_ms=30_000)
    for name, code, *detail in response.topic_errors:
        if code and for_code(code) is not TopicAlreadyExistsError:
            raise TopicsError(
                f"the broker refuses to create {name}: {detail[0] if detail else for_code(code).__name__}"
            )
    names = [t.name for t in missing]
    try:
        async with asyncio.timeout(LISTED_SECONDS):
            while not await _are_listed(settings, set(names)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise TopicsError(f"the broker does not list its new topics within {LISTED_SECONDS:.0f} s") from None
    return names


async def _are_listed(settings: Settings, names: set[str]) -> bool:
    """Whether the broker lists the topics; False while it does not answer. A single broker that is creating
    topics may for a short time list no broker at all, not even itself.
    """
    try:
        return names <= (await partition_counts(settings)).keys()
    except KafkaError:
        return False


def new_topic(topic: Topic[Any], settings: Settings) -> NewTopic:
    """The request that creates a topic."""
    name, partitions = broker_name(settings, topic.name), topic.partitions or settings.partitions
    configuration = topic.configuration(settings.replication)
    return NewTopic(name, partitions, settings.replication, topic_configs=configuration)


async def require(settings: Settings, topics: tuple[Topic[Any], ...]) -> None:
    """Raises TopicsError with the names of missing topics, which Faust would ignore silently."""
    existing = await partition_counts(settings)
    missing = [broker_name(settings, t.name) for t in topics if t.name not in existing]
    if missing:
        raise TopicsError(
            f"the broker lacks {', '.join(missing)}; create them with: pvstream topics --create"
        )


async def require_named(settings: Settings, name: str) -> None:
    """Raises TopicsError where the broker lacks a topic that is not in the table."""
    async with admin_client(settings) as admin:
        if broker_name(settings, name) not in await admin.list_topics():
            raise TopicsError(f"the broker lacks the topic {broker_name(settings, name)}")
