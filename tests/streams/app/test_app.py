from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from faust.types import ConsumerMessage

from streams.app.consumer import CommittedConsumer, ExplicitAckEvent, _CommittedConsumerThread
from streams.app.ports import FIRST_BATCH, FaustPorts
from streams.app.stage_app import _App
from streams.inference import InferenceWorkers
from streams.monitoring.progress import Progress
from streams.settings import Settings


class Consumer:
    """Records the offsets that are acknowledged."""

    def __init__(self) -> None:
        self.acked: list[int] = []

    def ack(self, message: Any) -> bool:
        self.acked.append(message.offset)
        return True


def event_of(kind: type[faust.Event], consumer: Consumer) -> Any:
    """An event of this class for a message at offset 7."""
    message = ConsumerMessage(
        "posts", 0, 7, timestamp=0.0, timestamp_type=0, headers={}, key=b"k", value=b"v", checksum=None
    )

    class App:
        pass

    app: Any = App()
    app.consumer = consumer
    message.incref()
    return kind(app, b"k", b"v", {}, message)


def test_a_record_that_faust_skips_on_a_rebalance_is_not_acknowledged() -> None:
    faust_consumer, consumer = Consumer(), Consumer()
    assert event_of(faust.Event, faust_consumer).ack()
    assert faust_consumer.acked == [7], "Faust's own event acknowledges at any call"
    event = event_of(ExplicitAckEvent, consumer)
    assert not event.ack()
    assert consumer.acked == []
    event.finished = True
    assert event.ack()
    assert consumer.acked == [7]


def test_the_starts_and_stops_of_fausts_services_are_no_messages_of_ours() -> None:
    for service in (_App, CommittedConsumer, _CommittedConsumerThread):
        assert service.logger.name == "faust"


@pytest.mark.parametrize("first", [1, FIRST_BATCH, 20])
async def test_only_the_first_batch_is_small(first: int) -> None:
    def events(start: int, n: int) -> list[Any]:
        return [
            SimpleNamespace(
                message=ConsumerMessage(
                    "posts",
                    0,
                    i,
                    timestamp=0.0,
                    timestamp_type=0,
                    headers={},
                    key=b"k",
                    value=b"v",
                    checksum=None,
                )
            )
            for i in range(start, start + n)
        ]

    class Stream:
        async def noack_take(self, size: int, within: float) -> AsyncIterator[list[Any]]:
            yield events(0, first)
            yield events(first, 20)

    application: Any = None
    workers = InferenceWorkers()
    ports = FaustPorts(application, workers, Progress("ner"), Settings())
    ports.stream = Stream()
    batches = [[r.offset for r in batch] async for batch in ports.batches(64, 0.05)]
    workers.close()
    assert [offset for batch in batches for offset in batch] == list(range(first + 20))
    rest = [first - FIRST_BATCH] if first > FIRST_BATCH else []
    assert [len(batch) for batch in batches] == [min(first, FIRST_BATCH), *rest, 20]
