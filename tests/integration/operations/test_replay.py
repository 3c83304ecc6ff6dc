"""What a replay reads from a real broker: exactly the requested range, and nothing is written."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from streams.broker.ranges import Bound, parse_bound, read_range
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import POSTS, SENTENCES, Topic, TopicsError
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka

pytestmark = pytest.mark.kafka

SAMPLES = processes.ROOT / "streams/samples"
#: Of the first record of the topic, in milliseconds; each later one comes a second after. It is an hour ago:
#: the broker deletes, every five minutes, what is older than the topic keeps.
STARTED = (int(time.time()) - 3600) * 1000


@pytest.fixture
def settings(kafka: LocalKafka) -> Settings:
    """A broker with samples in it and a consumer group that has read some of them."""
    made = Settings(broker=f"kafka://{kafka.bootstrap}")
    processes.create_topics(made)

    async def prepare() -> None:
        async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, acks="all", linger_ms=5) as producer:
            sent = [
                await producer.send(
                    topic.name,
                    key=orjson.loads(line)["id"].encode(),
                    value=line,
                    timestamp_ms=STARTED + 1000 * i,
                )
                for topic, n in ((POSTS, 60), (SENTENCES, 40))
                for i, line in enumerate(sample(topic, n))
            ]
            await asyncio.gather(*sent)
        tp = TopicPartition("posts", 0)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=kafka.bootstrap, group_id="pv-live", enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([tp])
        await consumer.commit({tp: 3})
        await consumer.stop()

    asyncio.run(prepare())
    return made


def sample(topic: Topic[Any], n: int) -> list[bytes]:
    return (SAMPLES / f"{topic.name}.jsonl").read_bytes().splitlines()[:n]


def read(
    settings: Settings, topic: Topic[Any], start: Bound = "beginning", stop: Bound = "end"
) -> list[Inbound]:
    seen: list[tuple[int, int]] = []
    found = asyncio.run(read_range(settings, topic, start, stop, lambda n, total: seen.append((n, total))))
    assert seen == sorted(seen)
    assert seen[-1] == (len(found), len(found))
    return found


def groups(settings: Settings) -> dict[str, dict[Any, Any]]:
    """Every consumer group and its offsets."""

    async def ask() -> dict[str, dict[Any, Any]]:
        admin = AIOKafkaAdminClient(**settings.client())
        await admin.start()
        try:
            names = sorted(str(group[0]) for group in await admin.list_consumer_groups())
            return {name: await admin.list_consumer_group_offsets(name) for name in names}
        finally:
            await admin.close()

    return asyncio.run(ask())


def test_a_range_is_read_by_offset_by_time_and_to_the_end_at_its_start(settings: Settings) -> None:
    before = groups(settings)
    assert list(before) == ["pv-live"]
    everything = read(settings, POSTS)
    places = [(r.partition, r.offset) for r in everything]
    assert places == sorted(places)
    assert len(set(places)) == 60
    assert {r.value for r in everything} == set(sample(POSTS, 60))

    assert [r for r in everything if 2 <= r.offset < 5] == read(settings, POSTS, 2, 5)
    assert read(settings, POSTS, 5, 2) == []
    assert read(settings, POSTS, 10**9, "end") == []
    assert read(settings, POSTS, "end", "end") == []
    assert read(settings, POSTS, 0, 10**9) == everything

    def at(second: int) -> Bound:
        return datetime.fromtimestamp(STARTED / 1000 + second, UTC)

    tenth = read(settings, POSTS, at(10), at(20))
    assert tenth == [r for r in everything if 10 <= r.timestamp - STARTED / 1000 < 20]
    assert len(tenth) == 10
    assert read(settings, POSTS, "beginning", parse_bound("2000-01-01")) == []
    assert read(settings, POSTS, parse_bound("2200-01-01"), "end") == []
    assert len(read(settings, POSTS, at(50), "end")) == 10
    assert groups(settings) == before, "no group is left behind"


def test_the_error_names_a_topic_that_the_broker_lacks(kafka: LocalKafka) -> None:
    empty = Settings(broker=f"kafka://{kafka.bootstrap}")
    with pytest.raises(TopicsError, match="the broker lacks posts"):
        read(empty, POSTS)
