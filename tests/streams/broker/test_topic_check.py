"""What a topic on the broker may differ in, and which reports of it were deleted."""

from __future__ import annotations

from dataclasses import replace

from aiokafka import AIOKafkaProducer
from aiokafka.partitioner import DefaultPartitioner

from streams.broker.deletions import Place, read_deletions
from streams.broker.embedded import PARTITIONS, EmbeddedBroker
from streams.broker.topic_check import TopicState, compare
from streams.settings import Settings
from streams.topics import EVENTS, POSTS, RELEASES, TOPICS, new_topic

ONE = Settings(replication=1)
THREE = Settings(replication=3)


def test_with_three_replicas_two_must_confirm_and_otherwise_the_broker_decides() -> None:
    for topic in TOPICS:
        request = new_topic(topic, THREE)
        assert (request.replication_factor, request.num_partitions) == (3, topic.partitions or 4)
        assert request.topic_configs["min.insync.replicas"] == "2", topic.name
        for replication in (1, 2):
            configuration = new_topic(topic, Settings(replication=replication)).topic_configs
            assert "min.insync.replicas" not in configuration


def test_a_configuration_that_may_not_be_read_is_a_difference_and_no_problem() -> None:
    state = TopicState(1, 1, {}, "TopicAuthorizationFailedError")
    (difference,) = compare(RELEASES, state, ONE)
    assert (difference.found, difference.problem) == ("TopicAuthorizationFailedError", "")
    assert [d.what for d in compare(RELEASES, replace(state, partitions=2), ONE)] == [
        "partitions",
        "configuration",
    ]


def test_names_and_partitions_are_those_of_the_settings() -> None:
    settings = Settings(prefix="staging.", partitions=2)
    assert new_topic(EVENTS, settings).name == "staging.events"
    found = [str(d) for d in compare(EVENTS, TopicState(4, 1, EVENTS.configuration()), settings)]
    assert found == ["staging.events: partitions is 4, expected 2"]
    (missing,) = compare(POSTS, None, settings)
    assert missing.topic == "staging.posts"


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
        places = [(b"a", old), (b"a", new), (b"b", deleted)]
        found = await read_deletions(settings, POSTS, places)
        assert [found.replace(key, place) for key, place in places] == [True, False, False]
