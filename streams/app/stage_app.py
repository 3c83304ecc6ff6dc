"""A stage as a Faust app with its own consumer group."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import faust
import faust.auth
from aiokafka import TopicPartition
from faust.types.auth import CredentialsT
from mode import CrashingSupervisor

from streams import metrics
from streams.app.consumer import FAUST_LOG, CommittedConsumer, PatientProducer
from streams.app.ports import FaustPorts
from streams.app.record_queue import RecordQueue
from streams.inference_threads import InferenceWorkers
from streams.monitoring.progress import Progress
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.stage import Stage, run_stage
from streams.topics import broker_name, group_id, request_bytes, table_name

#: How often a consumer asks the broker for its topics and partitions.
METADATA_MAX_AGE_MS = 10_000
#: Seconds that a request may take, as in Faust, which refuses to start with a longer session.
REQUEST_SECONDS = 90.0
#: Seconds without a request for records after which a consumer leaves its group: never. Faust asks for none
#: while a worker has no partitions, or all of them are paused, and aiokafka joins again only after a request:
#: a worker beyond the number of partitions would leave after 1,000 seconds and never take over from another.
#: A worker that hangs is ended by the watchdog.
MAX_POLL_SECONDS = 100 * 365 * 24 * 3600.0


def queue_size(settings: Settings, workers: int) -> int:
    """Maximum number of records in the queue of a stage: two batches for each worker, and two more."""
    return 2 * (workers + 1) * settings.batch


def options(settings: Settings) -> dict[str, Any]:
    """The options of a Faust app."""
    return {
        "broker": [f"kafka://{b}" for b in settings.bootstrap],
        "broker_credentials": _credentials(settings),
        "broker_session_timeout": settings.session_timeout,
        "broker_heartbeat_interval": settings.session_timeout / 4,
        "broker_request_timeout": max(REQUEST_SECONDS, settings.session_timeout),
        "broker_max_poll_interval": MAX_POLL_SECONDS,
        "broker_commit_interval": settings.commit_interval,
        "consumer_group_instance_id": settings.instance or None,
        # On a rebalance and on a stop, finish and acknowledge the records already read.
        "stream_wait_empty": True,
        "consumer_auto_offset_reset": "earliest",
        # A broker that has just started may not list the source topic yet. A member that asks it then, and
        # leads the group, assigns no partitions until it asks again: with Faust's default after 5 minutes.
        "consumer_metadata_max_age_ms": METADATA_MAX_AGE_MS,
        "producer_acks": -1,
        "producer_linger": 0.005,
        "producer_max_request_size": request_bytes(settings),
        # An agent raises only for an error that no single record causes: the app must crash, not restart it.
        "agent_supervisor": CrashingSupervisor,
        # The embedded broker supports no admin requests, and no tables or leader election are used.
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "store": "memory://",
        "web_enabled": False,
        "autodiscover": False,
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


class _App(faust.App):
    logger = FAUST_LOG
    records: RecordQueue

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
        self.dead_letters: Sequence[str] = tuple(topic.dead_letters.name for topic in stage.sources)
        self.assigned = False
        """Whether the consumer group has assigned partitions (possibly none) since it last revoked them."""
        self.agent_failed: BaseException | None = None
        """The error that ended the agent."""
        self._assigned_at = 0.0
        metrics.prepare(stage.name)
        metrics.PROGRESS.labels(stage.name).set_function(progress.seconds_since_progress)
        metrics.SINCE_ASSIGNMENT.labels(stage.name).set_function(self._seconds_since_assignment)
        metrics.WORKERS.labels(stage.name).set(inference.workers)
        self.app = _App(group_id(settings, stage.name), **options(settings))
        self.app.records = RecordQueue(self.app, queue_size(settings, inference.workers))
        self.app.transport.Consumer = CommittedConsumer  # type: ignore[misc]
        self.app.transport.Producer = PatientProducer  # type: ignore[misc]
        self._settings = settings
        self._handle = handle
        self._ports = FaustPorts(self.app, self.app.records, inference, progress, settings)
        self._ports.measured = stage.source.name
        self._sources = tuple(broker_name(settings, topic.name) for topic in stage.sources)
        sources = self.app.topic(
            *self._sources, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
        )
        self.app.agent(sources, name=f"pv-{stage.name}", concurrency=1)(self._agent)
        self.app.on_partitions_assigned.connect(self._on_assigned)  # type: ignore[arg-type]
        self.app.on_partitions_revoked.connect(self._on_revoked)  # type: ignore[arg-type]

    async def _agent(self, _stream: Any) -> None:
        try:
            self._ports.handle = await self._handle()
            batches = self._ports.batches(self._settings.batch, self._settings.wait)
            await run_stage(self.stage, batches, self._ports)
        except Exception as error:
            # Faust logs it and crashes too, but the worker reports this error.
            self.agent_failed = error
            raise

    async def _on_assigned(self, _app: Any, assigned: Any, /, **_: Any) -> None:
        partitions = [tp for tp in assigned if tp.topic in self._sources]
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
                    gauge.remove(self.stage.name, table_name(self._settings, tp.topic), tp.partition)

    def _seconds_since_assignment(self) -> float:
        return time.monotonic() - self._assigned_at if self.assigned else 0.0

    def acknowledged(self) -> dict[TopicPartition, int]:
        """For each assigned partition of the sources the offset behind the records whose acknowledgement is
        committed; 0 where there is none.
        """
        consumer: Any = self.app._consumer
        if consumer is None or not self.assigned:
            return {}
        return {
            TopicPartition(*tp): consumer._committed_offset.get(tp) or 0
            for tp in consumer.assignment()
            # Faust adds a partition there when it has read the committed offset.
            if tp.topic in self._sources and tp in consumer._read_offset
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
