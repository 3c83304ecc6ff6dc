"""A stage as a Faust app with its own consumer group; the only module that uses Faust."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import faust
import faust.auth
from aiokafka import TopicPartition
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from faust.types.auth import CredentialsT
from mode import CrashingSupervisor

from models.releases.loading import Loaded
from streams import metrics
from streams.broker import tolerant_headers
from streams.broker.consumer import ISOLATION
from streams.broker.membership import Membership
from streams.inference import InferenceWorkers
from streams.monitoring.drift import Drift
from streams.monitoring.progress import Progress
from streams.records import Headers, Inbound
from streams.releases.handle import Handle
from streams.settings import Settings
from streams.stage import Processed, Stage, run_stage
from streams.topics import MAX_DEAD_MESSAGE, broker_name, group_id, table_name

T = TypeVar("T")
log = logging.getLogger(__name__)
#: Of the classes below that are services of Faust, whose starts and stops are Faust's messages and not ours.
_FAUST_LOG = logging.getLogger("faust")
#: How often a consumer asks the broker for its topics and partitions.
METADATA_MAX_AGE_MS = 10_000
#: Records of the first batch of a stage.
FIRST_BATCH = 8


class FaustPorts:
    """The ports of a stage on a running Faust app."""

    def __init__(
        self,
        app: faust.App,
        inference: InferenceWorkers,
        progress: Progress,
        settings: Settings,
    ) -> None:
        self.workers = inference.workers
        self.batch_characters = settings.batch_characters
        self.max_output_bytes = settings.max_output_bytes
        self.keep_text = settings.keep_text
        self._app = app
        self._inference = inference
        self._settings = settings
        self._progress = progress
        self._drift = Drift(progress.stage, settings.drift_sample, inference.run)
        self.stream: Any = None
        self.handle: Handle

    def snapshot(self) -> Loaded:
        return self.handle.current

    async def infer(self, work: Callable[[], T], batch: Sequence[Inbound]) -> T:
        return await self._inference.run(partial(self._progress.infer, work, batch))

    async def owns(self, batch: Sequence[Inbound]) -> bool:
        consumer: Any = self._app.consumer
        messages = [record.token.message for record in batch]
        if await consumer._thread.membership.holds(min(m.generation_id for m in messages)):
            return True
        for message in messages:
            # Otherwise Faust would wait for their acknowledgement before it joins the group again.
            consumer.unacked.discard(message)
        log.warning("%s: %d records belong to another worker now: not sent", self._app.conf.id, len(batch))
        return False

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[Any]:
        # Topic.send would more than halve a worker's throughput (codecs, sensors, one more future for each
        # record).
        pairs: Any = list(headers)
        name = broker_name(self._settings, topic)
        return await self._app.producer.send(name, key, value, None, None, pairs)

    async def ack(self, record: Inbound) -> None:
        record.token.finished = True
        await self.stream.ack(record.token)

    def observe(self, processed: Sequence[Processed]) -> None:
        if self.handle.shadow is not None:
            self.handle.shadow.offer(processed)
        self._drift.offer(processed, self.handle.current)

    async def batches(self, size: int, wait: float) -> AsyncIterator[Sequence[Inbound]]:
        """Batches of up to `size` source records, waiting at most `wait` seconds; Faust acknowledges none of
        them by itself. The first one is small, so that there is a result soon.
        """
        first = FIRST_BATCH
        async for events in self.stream.noack_take(size, within=wait):
            records = [_inbound(self._settings, event) for event in events]
            self._progress.batch = records
            for part in (records[:first], records[first:]):
                if part:
                    yield part
            first = 0


class _CommittedConsumerThread(AIOKafkaConsumerThread):
    """Faust's consumer thread, reading as `streams.broker.consumer` does: Faust has no setting for it."""

    logger = _FAUST_LOG
    membership: Membership

    async def on_start(self) -> None:
        await super().on_start()
        self.membership = Membership(self._ensure_consumer()._coordinator)

    def _create_worker_consumer(self, transport: Any) -> Any:
        tolerant_headers.install()
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = ISOLATION
        return consumer


class _CommittedConsumer(Consumer):
    logger = _FAUST_LOG

    def _new_consumer_thread(self) -> Any:
        return _CommittedConsumerThread(self, loop=self.loop, beacon=self.beacon)


class ExplicitAckEvent(faust.Event):
    """A source record that is acknowledged only after the stage has set `finished`.

    On a rebalance Faust's stream skips the records that were fetched before it, and acknowledges them. If the
    same worker keeps the partition, their offsets would be committed although they were never processed.
    """

    finished = False

    def ack(self) -> bool:
        return bool(super().ack()) if self.finished else False


class _App(faust.App):
    logger = _FAUST_LOG

    def _create_directories(self) -> None:
        """Without tables nothing is written, and a process that is killed would leave the folders."""


class StageApp:
    """A stage as a Faust app, with its assignment and failure for the worker."""

    def __init__(
        self,
        stage: Stage[Any, Any],
        settings: Settings,
        handle: Callable[[], Awaitable[Handle]],
        inference: InferenceWorkers,
        progress: Progress,
    ) -> None:
        """`handle` waits until the model is loaded; the stage joins its group before that."""
        self.stage = stage
        self.progress = progress
        self.dead_letters = stage.source.dead_letters.name
        self.assigned = False
        """Whether the consumer group has assigned partitions (possibly none) since it last revoked them."""
        self.agent_failed: BaseException | None = None
        """The error that ended the agent."""
        self._assigned_at = 0.0
        metrics.prepare(stage.name)
        metrics.PROGRESS.labels(stage.name).set_function(progress.seconds_since_progress)
        metrics.SINCE_ASSIGNMENT.labels(stage.name).set_function(self._seconds_since_assignment)
        metrics.WORKERS.labels(stage.name).set(inference.workers)
        self.app = _App(group_id(settings, stage.name), **_options(settings, inference.workers))
        self.app.transport.Consumer = _CommittedConsumer  # type: ignore[misc]
        self._settings = settings
        self._handle = handle
        self._ports = FaustPorts(self.app, inference, progress, settings)
        self._source = broker_name(settings, stage.source.name)
        source = self.app.topic(
            self._source, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
        )
        self.app.agent(source, name=f"pv-{stage.name}", concurrency=1)(self._agent)
        self.app.on_partitions_assigned.connect(self._on_assigned)  # type: ignore[arg-type]
        self.app.on_partitions_revoked.connect(self._on_revoked)  # type: ignore[arg-type]

    async def _agent(self, stream: Any) -> None:
        self._ports.stream = stream
        try:
            self._ports.handle = await self._handle()
            batches = self._ports.batches(self._settings.batch, self._settings.wait)
            await run_stage(self.stage, batches, self._ports)
        except Exception as error:
            # Faust logs it and crashes too, but the worker reports this error.
            self.agent_failed = error
            raise

    async def _on_assigned(self, _app: Any, assigned: Any, /, **_: Any) -> None:
        partitions = [tp for tp in assigned if tp.topic == self._source]
        self.assigned, self._assigned_at = True, time.monotonic()
        metrics.REBALANCES.labels(self.stage.name).inc()
        metrics.ASSIGNED.labels(self.stage.name).set(len(partitions))

    async def _on_revoked(self, _app: Any, revoked: Any, /, **_: Any) -> None:
        self.assigned = False
        metrics.ASSIGNED.labels(self.stage.name).set(0)
        for tp in revoked:
            # From now on another worker reports the lag of this partition.
            for gauge in (metrics.LAG, metrics.LAG_SECONDS):
                with suppress(KeyError):
                    gauge.remove(self.stage.name, self.stage.source.name, tp.partition)

    def _seconds_since_assignment(self) -> float:
        return time.monotonic() - self._assigned_at if self.assigned else 0.0

    def acknowledged(self) -> dict[TopicPartition, int]:
        """For each assigned partition of the source the offset behind the records whose acknowledgement is
        committed; 0 where there is none.
        """
        consumer: Any = self.app._consumer
        if consumer is None or not self.assigned:
            return {}
        return {
            TopicPartition(*tp): consumer._committed_offset.get(tp) or 0
            for tp in consumer.assignment()
            # Faust enters a partition there once it knows what is committed.
            if tp.topic == self._source and tp in consumer._read_offset
        }

    def has_read_all(self, tp: TopicPartition, end: int) -> bool:
        """Whether everything before `end` is fetched and acknowledged."""
        consumer: Any = self.app._consumer
        read = consumer._read_offset.get(tp)
        committed = consumer._committed_offset.get(tp) or 0
        return (read is None or read < committed) and _position(consumer, tp) >= end


def _position(consumer: Any, tp: Any) -> int:
    """The offset that is fetched next, behind control records too; -1 while it is not known."""
    subscription = consumer._thread._ensure_consumer()._subscription.subscription
    if subscription is None or subscription.assignment is None:
        return -1
    state = subscription.assignment.state_value(tp)
    return state._position if state is not None and state.has_valid_position else -1


def _options(settings: Settings, workers: int) -> dict[str, Any]:
    return {
        "broker": [f"kafka://{b}" for b in settings.bootstrap],
        "broker_credentials": _credentials(settings),
        "broker_session_timeout": settings.session_timeout,
        "broker_heartbeat_interval": settings.session_timeout / 4,
        "broker_commit_interval": settings.commit_interval,
        "consumer_group_instance_id": settings.instance or None,
        # For each worker a batch in inference and one that waits for its turn or for confirmation, and two
        # that are ready. Faust's default of 4096 records would only use memory.
        "stream_buffer_maxsize": 2 * (workers + 1) * settings.batch,
        # On a rebalance and on a stop, finish and acknowledge the records already read.
        "stream_wait_empty": True,
        "consumer_auto_offset_reset": "earliest",
        # A broker that has just started may not list the source topic yet. A member that asks it then, and
        # leads the group, assigns no partitions until it asks again: with Faust's default after 5 minutes.
        "consumer_metadata_max_age_ms": METADATA_MAX_AGE_MS,
        "producer_acks": -1,
        "producer_linger": 0.005,
        "producer_max_request_size": 2 * MAX_DEAD_MESSAGE,
        # An agent raises only for an error that no single record causes: the app must crash, not restart it.
        "agent_supervisor": CrashingSupervisor,
        # The embedded broker supports no admin requests, and no tables or leader election are used.
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "store": "memory://",
        "web_enabled": False,
        "autodiscover": False,
        "Event": ExplicitAckEvent,
    }


def _credentials(settings: Settings) -> CredentialsT | None:
    context = settings.ssl_context()
    tokens = settings.token_provider()
    if tokens is not None:
        return faust.auth.OAuthCredentials(oauth_cb=tokens, ssl_context=context)
    if settings.security.startswith("SASL"):
        return faust.SASLCredentials(
            mechanism=settings.sasl_mechanism,
            username=settings.sasl_username,
            password=settings.sasl_password.get_secret_value(),
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context is not None else None


def _inbound(settings: Settings, event: Any) -> Inbound:
    m = event.message
    topic = table_name(settings, m.topic)
    return Inbound(topic, m.partition, m.offset, m.key, m.value, m.timestamp, _headers(m.headers), event)


def _headers(raw: Any) -> Headers:
    """Headers as pairs; Faust gives a dictionary, pairs or None. A value may be null."""
    pairs = raw.items() if isinstance(raw, dict) else raw or ()
    return tuple(
        (name, value if value is None or isinstance(value, bytes) else str(value).encode())
        for name, value in pairs
    )
