"""One Faust app and one consumer group for each stage; here is everything of Faust that the project
touches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import faust
from faust.types.auth import CredentialsT
from mode import CrashingSupervisor

from models.releases.loading import Loaded
from streams import metrics
from streams.inference import InferenceThread
from streams.records import Headers, Inbound
from streams.releases.handle import Handle
from streams.settings import Settings
from streams.stage import Done, Stage, run_stage
from streams.topics import MAX_DEAD_MESSAGE

T = TypeVar("T")
#: How often a consumer asks the broker for its topics and partitions.
METADATA_MAX_AGE_MS = 10_000


class FaustPorts:
    """The ports of a stage on a running Faust app."""

    def __init__(
        self, app: faust.App, handle: Handle, inference: InferenceThread, settings: Settings
    ) -> None:
        self.max_output_bytes = settings.max_output_bytes
        self._app = app
        self._handle = handle
        self._inference = inference
        self.stream: Any = None

    def snapshot(self) -> Loaded:
        return self._handle.current

    async def infer(self, work: Callable[[], T]) -> T:
        return await self._inference.run(work)

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[Any]:
        # Topic.send costs more than half of a worker's throughput (codecs, sensors, one more future a
        # record).
        return await self._app.producer.send(topic, key, value, None, None, list(headers))

    async def ack(self, record: Inbound) -> None:
        record.token.finished = True
        await self.stream.ack(record.token)

    def observe(self, done: Sequence[Done]) -> None:
        if self._handle.shadow is not None:
            self._handle.shadow.offer(done)

    async def batches(self, size: int, wait: float) -> AsyncIterator[Sequence[Inbound]]:
        """Source records in batches; Faust acks none of them by itself."""
        async for events in self.stream.noack_take(size, within=wait):
            yield [_inbound(event) for event in events]


class HeldEvent(faust.Event):
    """A source record that is acked when we say so.

    On a rebalance Faust's stream skips what was fetched before it, and acks what it skips: where the same
    worker keeps the partition, that record would be committed without ever having been processed.
    """

    finished = False

    def ack(self) -> bool:
        return bool(super().ack()) if self.finished else False


class StageApp:
    """A stage as a Faust app, with what its worker wants to know about it."""

    def __init__(
        self, stage: Stage[Any, Any], settings: Settings, handle: Handle, inference: InferenceThread
    ) -> None:
        self.stage = stage
        self.assigned = False
        """Whether the group has given this worker its share (which may be nothing) since it last took it
        away.
        """
        self.agent_failed: BaseException | None = None
        metrics.prepare(stage.name)
        # Faust makes a data directory, although without tables nothing is written there.
        self._data = TemporaryDirectory(prefix=f"pv-{stage.name}-")
        self.app = faust.App(f"pv-{stage.name}", datadir=self._data.name, **_options(settings))
        self._settings = settings
        self._ports = FaustPorts(self.app, handle, inference, settings)
        source = self.app.topic(
            stage.source.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
        )
        self.app.agent(source, name=f"pv-{stage.name}", concurrency=1)(self._agent)
        self.app.on_partitions_assigned.connect(self._on_assigned)  # type: ignore[arg-type]
        self.app.on_partitions_revoked.connect(self._on_revoked)  # type: ignore[arg-type]

    async def _agent(self, stream: Any) -> None:
        self._ports.stream = stream
        try:
            await run_stage(
                self.stage, self._ports.batches(self._settings.batch, self._settings.wait), self._ports
            )
        except Exception as error:
            # Faust logs and crashes too; the worker wants the reason itself.
            self.agent_failed = error
            raise

    async def _on_assigned(self, _app: Any, assigned: Any, /, **_: Any) -> None:
        mine = [tp for tp in assigned if tp.topic == self.stage.source.name]
        self.assigned = True
        metrics.ASSIGNED.labels(self.stage.name).set(len(mine))

    async def _on_revoked(self, _app: Any, revoked: Any, /, **_: Any) -> None:
        self.assigned = False
        metrics.ASSIGNED.labels(self.stage.name).set(0)
        for tp in revoked:
            # Another worker reports this partition from now on.
            with suppress(KeyError):
                metrics.LAG.remove(self.stage.name, tp.topic, tp.partition)

    def observe_lag(self) -> None:
        """Sets the lag of each assigned partition from what the consumer already knows; asks the broker
        nothing.
        """
        consumer: Any = self.app._consumer
        if consumer is None or not self.assigned:
            return
        for tp in consumer.assignment():
            end = consumer.highwater(tp)
            if tp.topic == self.stage.source.name and end is not None:
                done = consumer._committed_offset.get(tp) or 0
                metrics.LAG.labels(self.stage.name, tp.topic, tp.partition).set(max(0, end - done))


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "broker": [f"kafka://{b}" for b in settings.bootstrap],
        "broker_credentials": _credentials(settings),
        "broker_session_timeout": settings.session_timeout,
        "broker_heartbeat_interval": settings.session_timeout / 4,
        "broker_commit_interval": settings.commit_interval,
        # Four batches: one infers, one waits to be confirmed, two are ready. Faust's 4096 records would only
        # be memory.
        "stream_buffer_maxsize": 4 * settings.batch,
        # On a rebalance and on a stop, what was taken is finished and acked first.
        "stream_wait_empty": True,
        "consumer_auto_offset_reset": "earliest",
        # A broker that has just started may not list the source topic yet. A member that asks it then, and
        # leads the group, assigns no partitions until it asks again: with Faust's default after 5 minutes.
        "consumer_metadata_max_age_ms": METADATA_MAX_AGE_MS,
        "producer_acks": -1,
        "producer_linger": 0.005,
        "producer_max_request_size": 2 * MAX_DEAD_MESSAGE,
        # An agent that raises has failed on something that is no record's fault: end the process, loudly.
        "agent_supervisor": CrashingSupervisor,
        # The embedded broker answers no admin calls, and no table or leader election is used.
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "store": "memory://",
        "web_enabled": False,
        "autodiscover": False,
        "Event": HeldEvent,
    }


def _credentials(settings: Settings) -> CredentialsT | None:
    context = settings.ssl_context()
    if settings.security.startswith("SASL"):
        return faust.SASLCredentials(
            mechanism=settings.sasl_mechanism,
            username=settings.sasl_username,
            password=settings.sasl_password.get_secret_value(),
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context is not None else None


def _inbound(event: Any) -> Inbound:
    m = event.message
    return Inbound(m.topic, m.partition, m.offset, m.key, m.value, m.timestamp, _headers(m.headers), event)


def _headers(found: Any) -> Headers:
    pairs = found.items() if isinstance(found, dict) else found or ()
    return tuple((name, value if isinstance(value, bytes) else str(value).encode()) for name, value in pairs)
