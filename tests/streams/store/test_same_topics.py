"""The offsets of a database are those of one cluster's topics, and are used for no others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.embedded import EmbeddedBroker
from streams.broker.topic_ids import TopicId, topic_ids
from streams.codec import encode
from streams.settings import Settings
from streams.store import follow
from streams.store.changes import Batch
from streams.store.database import DatabaseAway
from streams.store.follow import Follower
from streams.store.open_database import open_database
from streams.topics import TopicsError, partition_counts
from tests.streams.cli.command_line import CommandLine
from tests.streams.polling import until
from tests.streams.store.messages import event, report


def settings_of(broker: EmbeddedBroker, address: str) -> Settings:
    return Settings(broker=f"kafka://{broker.bootstrap}", database=address)


async def send(settings: Settings, ids: Sequence[str]) -> None:
    async with AIOKafkaProducer(**settings.client()) as producer:
        for i, id_ in enumerate(ids):
            value = encode(report(id_, i, event()))
            await producer.send_and_wait("events", value, key=id_.encode(), partition=0)


async def read(settings: Settings, **options: Any) -> None:
    """Up to the end of the topics."""
    database = await asyncio.to_thread(open_database, settings, write=True)
    with closing(database):
        await Follower(settings, database, **options).run(asyncio.Event(), until_end=True)


def stored(settings: Settings) -> tuple[set[str], Any]:
    """The ids of the reports and the next offset."""
    database = open_database(settings)
    with closing(database):
        ids = {id_ for (id_,) in database.query("SELECT id FROM reports")[1]}
        return ids, database.offsets().get(("events", 0))


async def test_topics_of_another_cluster_are_refused_or_read_from_the_beginning_if_told(address: str) -> None:
    with EmbeddedBroker() as first, EmbeddedBroker() as second:
        before, now = settings_of(first, address), settings_of(second, address)
        await send(before, ["a", "b"])
        await read(before)
        # More than were read of the first: its offsets would lead into the middle of these.
        others = ["c", "d", "e", "f"]
        await send(now, others)
        with pytest.raises(TopicsError, match="this broker is of cluster") as refused:
            await read(now)
        assert "\n" not in str(refused.value) and "--accept-topics" in str(refused.value)
        assert stored(now) == ({"a", "b"}, 2)
        await read(now, accept_topics=True)
        assert stored(now) == ({"a", "b", *others}, 4)
        await read(now)
        with pytest.raises(TopicsError, match="this broker is of cluster"):
            await read(before)


async def test_a_store_of_an_earlier_version_takes_on_the_ids_at_its_next_start(address: str) -> None:
    with EmbeddedBroker() as first, EmbeddedBroker() as second:
        before, now = settings_of(first, address), settings_of(second, address)
        with closing(open_database(before, write=True)) as database:
            database.write(Batch(offsets={("events", 0): 1}))
            assert database.topics() == {}
        await send(before, ["a", "b"])
        await read(before)
        assert stored(before) == ({"b"}, 2)
        with closing(open_database(before)) as database:
            kept = database.topics()
        assert kept.keys() == {topic.name for topic in follow.FOLLOWED}
        assert all(id_.cluster and id_.topic for id_ in kept.values())
        await send(now, ["c", "d", "e"])
        with pytest.raises(TopicsError, match="this broker is of cluster"):
            await read(now)


async def test_offsets_without_ids_that_the_topic_does_not_have_are_left_if_told_so(tmp_path: Any) -> None:
    with EmbeddedBroker() as broker:
        settings = settings_of(broker, str(tmp_path / "x.duckdb"))
        with closing(open_database(settings, write=True)) as database:
            database.write(Batch(offsets={("events", 0): 100}))
        await send(settings, ["a"])
        with pytest.raises(TopicsError, match="up to 100, but it ends at 1: the topic was created again"):
            await read(settings)
        await read(settings, accept_topics=True)
        assert stored(settings) == ({"a"}, 1)


async def test_a_topic_that_is_created_again_between_the_look_and_the_fetch_is_not_read(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    was_created_again = asyncio.Event()

    async def ids(client: Any, names: Sequence[str]) -> dict[str, TopicId]:
        found = await topic_ids(client, names)
        if was_created_again.is_set():
            found["events"] = replace(found["events"], topic="another")
        return found

    monkeypatch.setattr(follow, "topic_ids", ids)
    with EmbeddedBroker() as broker:
        settings = settings_of(broker, str(tmp_path / "x.duckdb"))
        with closing(open_database(settings, write=True)) as database:
            follower = Follower(settings, database)
            running = asyncio.create_task(follower.run(asyncio.Event()))
            await send(settings, ["a"])
            await until(lambda: follower.counts["written"] == 1 or running.done())
            was_created_again.set()
            await send(settings, ["b"])
            with pytest.raises(TopicsError, match="the topic was created again"):
                await asyncio.wait_for(running, 120)
        assert stored(settings) == ({"a"}, 1)


async def test_what_could_not_be_written_is_not_taken_for_the_end_of_the_topics(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database goes away as the last messages are written, and then the broker for a moment."""
    monkeypatch.setattr(follow, "AWAY", 0.0)
    apply, away = Follower.apply, ["database", "broker"]

    def applied(self: Follower, messages: Any) -> None:
        if "database" in away:
            away.remove("database")
            raise DatabaseAway("the server is away")
        apply(self, messages)

    async def counted(settings: Settings) -> dict[str, int]:
        if "broker" in away and "database" not in away:
            away.remove("broker")
            raise KafkaConnectionError("no broker")
        return await partition_counts(settings)

    monkeypatch.setattr(Follower, "apply", applied)
    monkeypatch.setattr(follow, "partition_counts", counted)
    with EmbeddedBroker() as broker:
        settings = settings_of(broker, str(tmp_path / "x.duckdb"))
        await send(settings, ["a"])
        await read(settings)
        assert away == [] and stored(settings) == ({"a"}, 1)


async def test_a_topic_that_is_gone_ends_the_store(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LOOK", 0.0)
    looks = []

    async def counted(settings: Settings) -> dict[str, int]:
        looks.append(await partition_counts(settings))
        is_gone = len(looks) > 2
        return {name: n for name, n in looks[-1].items() if name != "events" or not is_gone}

    monkeypatch.setattr(follow, "partition_counts", counted)
    with EmbeddedBroker() as broker, pytest.raises(TopicsError, match="does not have events any more"):
        async with asyncio.timeout(60):
            settings = settings_of(broker, str(tmp_path / "x.duckdb"))
            with closing(open_database(settings, write=True)) as database:
                await Follower(settings, database).run(asyncio.Event())
    assert len(looks) == 3


async def test_ids_are_those_of_the_broker_and_of_no_topic_that_it_lacks(tmp_path: Any) -> None:
    with EmbeddedBroker() as broker:
        settings = settings_of(broker, str(tmp_path / "x.duckdb"))
        async with running_client(kafka_consumer(settings, group_id=None)) as consumer:
            found = await topic_ids(consumer._client, ["events", "none", "reviews"])
            assert found.keys() == {"events", "reviews"} and len(set(found.values())) == 2
            assert await topic_ids(consumer._client, ["events"]) == {"events": found["events"]}


@pytest.mark.parametrize(
    ("kept", "found", "is_other"),
    [
        (("c", "t"), ("c", "t"), False),
        (("c", "t"), ("c", "u"), True),
        (("c", "t"), ("d", "t"), True),
        # A broker that states no ids, or did not when they were kept.
        (("c", ""), ("c", "t"), False),
        (("c", "t"), ("c", ""), False),
        (("c", ""), ("d", ""), True),
    ],
)
def test_an_unstated_id_says_nothing(kept: tuple[str, str], found: tuple[str, str], is_other: bool) -> None:
    assert TopicId(*found).is_other(TopicId(*kept)) is is_other


def test_the_command_refuses_another_cluster_with_one_line(pvstream: CommandLine, tmp_path: Any) -> None:
    address = str(tmp_path / "x.duckdb")
    with EmbeddedBroker() as first, EmbeddedBroker() as second:
        pvstream.set("PV_DATABASE", address)
        pvstream.set("PV_BROKER", f"kafka://{first.bootstrap}")
        assert pvstream("store", "--until-end").code == 0
        pvstream.set("PV_BROKER", f"kafka://{second.bootstrap}")
        refused = pvstream("store", "--until-end")
        assert refused.code == 1 and "this broker is of cluster" in refused.error_line
        assert pvstream("store", "--until-end", "--accept-topics").code == 0
        assert pvstream("store", "--until-end").code == 0
