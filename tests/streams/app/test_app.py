from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.types import TP, ConsumerMessage

from streams.agents import ner
from streams.app.consumer import CommittedConsumer, _CommittedConsumerThread
from streams.app.ports import FIRST_BATCH, FaustPorts, _Place
from streams.app.stage_app import _App, options
from streams.broker.consumer import whole_stop
from streams.broker.embedded import EmbeddedBroker
from streams.cli.ingest import Sender
from streams.inference_threads import InferenceWorkers
from streams.monitoring.progress import Progress
from streams.records import Report
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS
from streams.worker import Worker
from tests.fakes import FakeTagger, loaded
from tests.integration.processes import count
from tests.streams.polling import pause_fetches, until

STAGE = Stage("ner", POSTS, MENTIONS, ner.predict)


def test_the_starts_and_stops_of_fausts_services_are_no_messages_of_ours() -> None:
    for service in (_App, CommittedConsumer, _CommittedConsumerThread):
        assert service.logger.name == "faust"


async def test_a_stage_has_one_place_at_most_and_hands_it_over_once() -> None:
    inference = InferenceWorkers(1)
    place = _Place(inference)
    place.leave()
    await place.enter()
    assert (place.handed_over(), place.handed_over()) == (True, False)
    other = asyncio.ensure_future(_Place(inference).enter())
    await asyncio.sleep(0)
    assert not other.done()
    await inference.run(int, placed=True)
    await asyncio.wait_for(other, 120)
    inference.close()


@pytest.mark.parametrize("first", [1, FIRST_BATCH, 20])
async def test_only_the_first_batch_is_small(first: int) -> None:
    def messages(start: int, n: int) -> list[Any]:
        return [
            ConsumerMessage("posts", 0, i, 0.0, 0, headers={}, key=b"k", value=b"v", checksum=None)
            for i in range(start, start + n)
        ]

    class Records:
        async def batches(self, size: int, wait: float, place: Any) -> AsyncIterator[list[Any]]:
            yield messages(0, first)
            yield messages(first, 20)

    application: Any = None
    records: Any = Records()
    workers = InferenceWorkers()
    ports = FaustPorts(application, records, workers, Progress("ner"), Settings())
    batches = [[r.offset for r in batch] async for batch in ports.batches(64, 0.05)]
    workers.close()
    assert [offset for batch in batches for offset in batch] == list(range(first + 20))
    rest = [first - FIRST_BATCH] if first > FIRST_BATCH else []
    assert [len(batch) for batch in batches] == [min(first, FIRST_BATCH), *rest, 20]


async def test_what_is_fetched_and_dropped_in_a_rebalance_is_read_again_without_committed_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0)
        worker = Worker((STAGE,), settings)
        worker.handles["ner"] = Handle(loaded(FakeTagger()))
        async with worker.running(), Sender(settings) as sender:
            consumer: Any = worker._apps[0].app._consumer
            await until(lambda: bool(consumer.flow_active))
            getmany, perform_seek = consumer._getmany, consumer.perform_seek
            asked, dropped = asyncio.Event(), asyncio.Event()

            async def stopped_meanwhile(**arguments: Any) -> Any:
                asked.set()
                records = await getmany(**arguments)
                if records and not dropped.is_set():
                    consumer.stop_flow()
                return records

            async def observed() -> None:
                await perform_seek()
                dropped.set()

            monkeypatch.setattr(consumer, "_getmany", stopped_meanwhile)
            monkeypatch.setattr(consumer, "perform_seek", observed)
            await asyncio.wait_for(asked.wait(), 60)
            await sender.send("posts", Report(id="a", text="fine"))
            await asyncio.wait_for(dropped.wait(), 60)
            consumer.resume_flow()
            await until(lambda: count(broker.bootstrap, "mentions") == 1)


async def test_a_worker_drains_whose_fetch_pauses_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """aiokafka raises the cancellation of such a fetch, and the thread of Faust's consumer ended with it."""
    with EmbeddedBroker() as broker:
        worker = Worker((STAGE,), Settings(broker=f"kafka://{broker.bootstrap}", http_port=0, grace=20))
        worker.handles["ner"] = Handle(loaded(FakeTagger()))
        async with worker.running():
            consumer: Any = worker._apps[0].app._consumer
            await until(lambda: bool(consumer.flow_active))
            await until(pause_fetches(consumer._thread._consumer).is_set)
    assert "were not drained" not in caplog.text


@pytest.mark.parametrize("assigned", [[], [1], [0]])
async def test_a_partition_without_a_position_does_not_end_the_worker(
    assigned: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around a rebalance aiokafka has none, or none of the partition, and Faust asks for it at times."""
    with EmbeddedBroker() as broker:
        worker = Worker((STAGE,), Settings(broker=f"kafka://{broker.bootstrap}", http_port=0))
        worker.handles["ner"] = Handle(loaded(FakeTagger()))
        other = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
        await other.start()
        await asyncio.sleep(0)
        async with worker.running():
            consumer: Any = worker._apps[0].app._consumer
            await until(lambda: bool(consumer.flow_active))
            with monkeypatch.context() as around:
                around.setattr(consumer._thread, "_ensure_consumer", lambda: other)
                around.setattr(consumer._thread, "_verify_aiokafka_event_path", lambda now, tp: False)
                if assigned:
                    other.assign([TopicPartition("posts", n) for n in assigned])
                consumer.verify_event_path(monotonic(), TP("posts", 0))
        await whole_stop(other, other.stop())


def test_a_worker_without_partitions_never_leaves_its_group_for_that() -> None:
    """It asks for no records, and aiokafka, which leaves then, joins again only when it is asked for some."""
    app = _App("pv-ner", **options(Settings()))
    assert app.conf.broker_max_poll_interval > 10 * 365 * 24 * 3600
