"""Which reports were deleted, also where keys have moved because partitions were added, and replaced."""

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


async def test_a_record_is_replaced_by_a_later_version_of_its_key_and_not_by_a_tombstone() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        async with AIOKafkaProducer(**settings.client()) as producer:
            sent = [
                await producer.send_and_wait("posts", value, key=key, partition=1)
                for key, value in ((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", None))
            ]
        old, deleted, new = (Place(1, m.offset) for m in sent[:3])
        found = await read_deletions(settings, POSTS, [(b"a", old), (b"a", new), (b"b", deleted)])
        assert [found.replace(key, p) for key, p in ((b"a", old), (b"a", new), (b"b", deleted))] == [
            True,
            False,
            False,
        ]
