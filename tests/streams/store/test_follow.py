"""The store beside a broker that removes old messages."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from aiokafka import AIOKafkaProducer
from clickhouse_connect.driver.exceptions import OperationalError

from streams.broker.embedded import EmbeddedBroker
from streams.codec import encode
from streams.records import Inbound
from streams.settings import Settings
from streams.store.changes import Offsets
from streams.store.database import DatabaseAway
from streams.store.duckdb_file import DuckDatabase
from streams.store.follow import Follower
from streams.store.open_database import open_database
from streams.store.postgres import WRITER
from streams.topics import TopicsError
from tests.streams.polling import until
from tests.streams.store.messages import event, report

#: Of 50 kB each: far more than the embedded broker keeps.
MESSAGES = 300


async def send(settings: Settings, start: int, end: int) -> None:
    async with AIOKafkaProducer(**settings.client()) as producer:
        for i in range(start, end):
            value = encode(report(f"r{i}", i, event(), text="x" * 50_000))
            await producer.send_and_wait("events", value, key=b"key", partition=0)


@pytest.mark.slow
async def test_a_store_that_is_behind_reads_all_that_the_broker_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, may_write, written = threading.Event(), threading.Event(), set[int]()
    apply = Follower.apply

    def held_up(self: Follower, messages: Sequence[Inbound]) -> None:
        waits.set()
        may_write.wait(180)
        apply(self, messages)
        written.update(message.offset for message in messages)

    monkeypatch.setattr(Follower, "apply", held_up)
    with EmbeddedBroker() as broker, closing(DuckDatabase(tmp_path / "x.duckdb", write=True)) as database:
        settings, stop = Settings(broker=f"kafka://{broker.bootstrap}"), asyncio.Event()
        follower = Follower(settings, database)
        await send(settings, 0, 1)
        task = asyncio.create_task(follower.run(stop))
        await until(waits.is_set, 180)
        await send(settings, 1, MESSAGES)
        may_write.set()
        await until(lambda: MESSAGES - 1 in written, 180)
        stop.set()
        await task
        # One run of messages is gone; of those before it some were fetched in time.
        removed = sorted(set(range(MESSAGES)) - written)
        assert len(written) > 50 and removed == list(range(removed[0], removed[-1] + 1))
        assert list(database.query("SELECT count(*) FROM reports")[1]) == [(len(written),)]


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
async def test_a_server_that_goes_away_is_waited_for_and_nothing_is_lost_even_if_it_forgot_some(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes back as from a copy that lacks the last transactions."""
    monkeypatch.setattr("streams.store.follow.AWAY", 0.1)
    other = address.removesuffix("postgres") + "template1"
    with (
        psycopg.connect(address, autocommit=True) as beside,
        psycopg.connect(other, autocommit=True) as operator,
        EmbeddedBroker() as broker,
    ):

        def stored() -> set[str]:
            return {id_ for (id_,) in beside.execute("SELECT id FROM reports").fetchall()}

        settings, stop = Settings(broker=f"kafka://{broker.bootstrap}", database=address), asyncio.Event()
        with closing(await asyncio.to_thread(open_database, settings, write=True)) as database:
            task = asyncio.create_task(Follower(settings, database).run(stop))
            await send(settings, 0, 1)
            await until(lambda: stored() == {"r0"})
            operator.execute("ALTER DATABASE postgres WITH ALLOW_CONNECTIONS false")
            try:
                beside.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'pvstream'"
                )
                beside.execute("DELETE FROM reports")
                beside.execute("UPDATE offsets SET next_offset = 0")
                await send(settings, 1, 2)
                await until(lambda: "the database is waited for" in caplog.text)
                await asyncio.sleep(1)
                assert not task.done()
            finally:
                operator.execute("ALTER DATABASE postgres WITH ALLOW_CONNECTIONS true")
            await until(lambda: stored() == {"r0", "r1"})
            await send(settings, 2, 3)
            await until(lambda: stored() == {"r0", "r1", "r2"})
            stop.set()
            await task
        assert caplog.text.count("the database is waited for") == 1


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
async def test_both_sides_notice_within_a_minute_that_the_other_machine_is_gone(address: str) -> None:
    settings = Settings(database=address)
    with closing(await asyncio.to_thread(open_database, settings, write=True)) as database:
        connection = database._connection  # type: ignore[attr-defined]
        with socket.socket(fileno=os.dup(connection.fileno())) as ours:
            idle = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            between = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
            assert idle + between * ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) < 60
            assert 0 < ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) < 60_000
        names = ("idle", "interval", "count")
        shown = [connection.execute(f"SHOW tcp_keepalives_{name}").fetchone() for name in names]
        assert shown == [("20",), ("5",), ("4",)]
        assert connection.execute("SHOW tcp_user_timeout").fetchone() in {("40s",), ("40000",)}


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
async def test_a_lock_that_the_server_still_has_for_a_lost_connection_is_waited_for(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(database=address)
    with (
        psycopg.connect(address, autocommit=True) as lost,
        closing(await asyncio.to_thread(open_database, settings, write=True)) as database,
    ):
        monkeypatch.setattr("streams.store.postgres.LOCK_SECONDS", 0.0)
        lost.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pvstream'"
        )
        lost.execute("SELECT pg_advisory_lock(%s)", [WRITER])
        with pytest.raises(DatabaseAway):
            database.offsets()
        again = asyncio.create_task(asyncio.to_thread(database.offsets))
        await asyncio.sleep(1)
        assert not again.done()
        lost.execute("SELECT pg_advisory_unlock(%s)", [WRITER])
        assert await again == {}


class Unreliable:
    """A client of ClickHouse whose server is away at times."""

    def __init__(self, client: Any, away: threading.Event) -> None:
        self._client, self._away = client, away

    def __getattr__(self, name: str) -> Any:
        if self._away.is_set():
            # What clickhouse-connect raises where a connection is refused or lost.
            raise OperationalError("Error Connection refused executing HTTP request attempt 1")
        return getattr(self._client, name)


@pytest.mark.parametrize("address", ["clickhouse"], indirect=True)
async def test_a_clickhouse_server_that_goes_away_is_waited_for(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streams.store.follow.AWAY", 0.1)
    with EmbeddedBroker() as broker:
        settings, stop = Settings(broker=f"kafka://{broker.bootstrap}", database=address), asyncio.Event()
        with closing(await asyncio.to_thread(open_database, settings, write=True)) as database:
            away, follower = threading.Event(), Follower(settings, database)
            holder: Any = database
            monkeypatch.setattr(holder, "_client", Unreliable(holder._client, away))
            task = asyncio.create_task(follower.run(stop))
            await send(settings, 0, 1)
            await until(lambda: follower.counts["written"] == 1)
            away.set()
            await send(settings, 1, 2)
            await until(lambda: "the database is waited for" in caplog.text or task.done())
            assert not task.done()
            away.clear()
            await until(lambda: follower.counts["written"] == 2 or task.done())
            stop.set()
            await task
            assert list(database.query("SELECT id FROM reports ORDER BY id")[1]) == [("r0",), ("r1",)]
            assert database.offsets()["events", 0] == 2


async def test_a_store_ends_that_finds_its_topic_shorter_while_it_waits_for_records(tmp_path: Path) -> None:
    """A request that waits for records of the earlier assignment kept the consumer from stopping."""
    with EmbeddedBroker() as broker, closing(DuckDatabase(tmp_path / "x.duckdb", write=True)) as database:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        follower = Follower(settings, database)
        await send(settings, 0, 1)
        running = asyncio.create_task(follower.run(asyncio.Event()))
        await until(lambda: follower.counts["written"] == 1)
        offsets = database.offsets

        def later() -> Offsets:
            return {place: 100 for place in offsets()}

        database.offsets = later  # type: ignore[method-assign]
        follower._is_to_seek = True
        await asyncio.wait([running], timeout=30)
        is_done = running.done()
        running.cancel()
        with pytest.raises(TopicsError, match="the topic was created again"):
            await running
        assert is_done
