"""Which reports were deleted, from a topic whose keys have moved because partitions were added."""

from __future__ import annotations

from aiokafka import AIOKafkaProducer
from aiokafka.partitioner import DefaultPartitioner

from streams.broker.deletions import Place, read_deletions
from streams.broker.embedded import PARTITIONS, EmbeddedBroker
from streams.settings import Settings
from streams.topics import POSTS


async def test_a_deletion_in_the_partition_that_a_key_moved_to_is_found_whatever_its_offset() -> None:
    partitions = list(range(PARTITIONS))
    now = DefaultPartitioner()(b"moved", partitions, partitions)
    before = (now + 1) % PARTITIONS
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        async with AIOKafkaProducer(**settings.client()) as producer:
            for key in (b"other", b"other", b"moved"):
                sent = await producer.send_and_wait("posts", b"{}", key=key, partition=before)
            place = Place(before, sent.offset)
            assert not (await read_deletions(settings, POSTS, [(b"moved", place)])).follow(b"moved", place)
            deleted = await producer.send_and_wait("posts", None, key=b"moved")
        assert (deleted.partition, deleted.offset) == (now, 0)
        assert (await read_deletions(settings, POSTS, [(b"moved", place)])).follow(b"moved", place)
