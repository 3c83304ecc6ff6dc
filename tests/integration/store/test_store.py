"""The store loses nothing and doubles nothing, however often its process is killed."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer, TopicPartition

from streams.codec import encode
from streams.order import Latest, read_revision
from streams.records import Inbound
from streams.settings import Settings
from streams.store import follow
from streams.store.database import DatabaseError
from streams.store.open_database import open_database
from streams.topics import EVENTS
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.long_tests import long_test
from tests.integration.site import Site, stop
from tests.postgres_server import PostgresUnavailable, postgres
from tests.streams.store.messages import deletion, event, report

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
#: Kills, and records: more than are read until the last kill, and than the store reads at once. Each fourth
#: kill comes while the store starts.
KILLS = [(4, 6_000), pytest.param(20, 12_000, marks=long_test)]


@pytest.fixture(params=["duckdb", "postgresql", "clickhouse"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "clickhouse":
        yield f"chdb://{tmp_path / 'clickhouse'}"
        return
    if request.param == "duckdb":
        yield str(tmp_path / "events.duckdb")
        return
    try:
        with postgres() as url:
            yield url
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


def records(rng: random.Random, n: int) -> list[Inbound]:
    """Reports that are sent, sent again, revised, deleted, and overtaken by stale results."""
    made = []
    for offset in range(n):
        id_ = f"r{rng.randrange(n // 2)}"
        if rng.random() < 0.05:
            made.append(deletion(0, id_, offset))
            continue
        one = report(id_, offset, event(rng.choice("abc")), event(pt="Insomnia", negated=rng.random() < 0.3))
        made.append(Inbound("events", 0, 0, id_.encode(), encode(one), 0.0))
        if rng.random() < 0.1:
            made.append(rng.choice(made))
    return made


def produce(kafka: LocalKafka, messages: list[Inbound]) -> None:
    """Into the partition of the key, in order, with headers."""
    client = Producer({"bootstrap.servers": kafka.bootstrap})
    for m in messages:
        client.produce("events", key=m.key, value=m.value, headers=list(m.headers))
    assert client.flush(60) == 0


def expected(kafka: LocalKafka) -> dict[str, Any]:
    """What the upsert makes of the topic."""
    latest: Latest[Any] = Latest()
    for m in processes.read_all(kafka.bootstrap, "events"):
        one = Inbound("events", m.partition, m.offset, m.key, m.value, m.timestamp / 1000, tuple(m.headers))
        value = None if m.value is None else orjson.loads(m.value)
        latest.offer(m.key.decode(), read_revision(EVENTS, one), value)
    return {str(key): value for key, value in latest.items()}


@pytest.mark.parametrize(("kills", "n"), KILLS)
def test_kills_of_the_store_lose_nothing_and_double_nothing(
    kafka: LocalKafka, tmp_path: Path, database: str, kills: int, n: int
) -> None:
    site, rng = Site(kafka, tmp_path, PV_DATABASE=database), random.Random(7)
    made = records(rng, n)
    produce(kafka, made)
    read_at_kills = []
    for kill in range(kills):
        before = offset_of(database)
        with site.running_broken(small_batches, "store") as running:
            # Some while they start, the others somewhere in one of many transactions.
            if kill % 4:
                wait_for_more(database, before)
            time.sleep(rng.uniform(0, 0.2))
            running.kill()
        read_at_kills.append(offset_of(database))
    site.must("store", "--until-end")
    site.must("store", "--until-end")
    print(f"messages read at each kill: {read_at_kills}")
    assert read_at_kills == sorted(read_at_kills) and read_at_kills[-1] > 0 and read_at_kills[1] < len(made)
    check(database, expected(kafka), site.count("events"))


def test_up_writes_what_its_stages_find_and_keeps_another_writer_away(tiny_site: Site) -> None:
    database = tiny_site.env["PV_DATABASE"]
    with tiny_site.running("up", "--store") as worker:
        tiny_site.wait_ready()
        sent = tiny_site.produce_samples("posts") + tiny_site.produce_samples("questions")
        try:
            processes.wait_until(lambda: stored(database) == sent, "all reports in the store", 120)
        except AssertionError:
            print(tiny_site.log.read_text(), f"{stored(database)} of {sent}")
            raise
        refused = processes.forked_command("store", "--until-end", env=tiny_site.env)
        assert refused.returncode == 1 and "another process writes" in refused.stderr
        stop(worker)
    assert stored(database) == sent


def test_a_store_whose_next_message_is_gone_reads_what_the_topic_still_has(site: Site) -> None:
    """As after a suspension that outlasts the retention. A topic that was created again is not read."""
    database, client = site.env["PV_DATABASE"], processes.admin(site.kafka.bootstrap)
    made = [Inbound("events", 0, 0, b"r%d" % i, encode(report(f"r{i}", i)), 0.0) for i in range(800)]
    with site.running("store") as store:
        produce(site.kafka, made[:300])
        processes.wait_until(lambda: stored(database) == 300, "the first ones in the store")
        store.send_signal(signal.SIGSTOP)
        produce(site.kafka, made[300:])
        parts = [TopicPartition("events", p, 120) for p in range(site.settings.partitions)]
        for deleted in client.delete_records(parts).values():
            deleted.result()
        left = {m.key.decode() for m in site.read_all("events")}
        store.send_signal(signal.SIGCONT)
        processes.wait_until(lambda: left <= ids(database), "what is left in the store", 180)
        assert "messages were removed from the topic before they were read" in site.log.read_text()

        store.send_signal(signal.SIGSTOP)
        client.delete_topics(["events"])["events"].result()
        processes.create_topics(site.settings)
        produce(site.kafka, made[:20])
        store.send_signal(signal.SIGCONT)
        assert store.wait(30) == 1
    assert "the topic was created again" in site.log.read_text()


def test_a_store_waits_for_a_broker_that_is_away(site: Site) -> None:
    database = site.env["PV_DATABASE"]
    made = [Inbound("events", 0, 0, b"r%d" % i, encode(report(f"r{i}", i)), 0.0) for i in range(20)]
    with site.running_broken(frequent_looks, "store") as store:
        produce(site.kafka, made[:10])
        processes.wait_until(lambda: stored(database) == 10, "the first ones in the store")
        site.kafka.kill()
        time.sleep(4)
        assert store.poll() is None, site.log.read_text()
        site.kafka.restart()
        produce(site.kafka, made[10:])
        processes.wait_until(lambda: stored(database) == 20, "the others in the store")
        site.kafka.kill()
        time.sleep(1)
        stop(store)
    site.kafka.restart()


def frequent_looks() -> None:
    follow.LOOK = 0.5


def stored(database: str) -> int:
    """Reports in the store."""
    return int(query(database, "SELECT count(*) FROM reports", empty=[(0,)])[0][0])


def ids(database: str) -> set[str]:
    return {id_ for (id_,) in query(database, "SELECT id FROM reports", empty=[])}


def small_batches() -> None:
    """Many transactions, and a file that is often free for the test to read."""
    follow.BATCH, follow.HOLD = 50, 0.02


def wait_for_more(database: str, before: int) -> None:
    if database.startswith("chdb:"):  # while another process has it open, only its files can be seen
        folder = Path(database.removeprefix("chdb://"))
        files = parts(folder)
        processes.wait_until(lambda: parts(folder) > files + 3, "a few inserts")
        return
    processes.wait_until(lambda: offset_of(database) > before, "a transaction")


def parts(folder: Path) -> int:
    """Highest number of an insert in the tables of an embedded engine."""
    names = (path.name.split("_") for path in folder.glob("store/*/*/all_*_*_*"))
    return max((int(name[2]) for name in names if name[2].isdigit()), default=0)


def offset_of(database: str) -> int:
    """Messages that the database has read."""
    found = query(database, "SELECT coalesce(sum(next_offset), 0) FROM offsets", empty=[(0,)])
    return int(found[0][0])


def query(database: str, sql: str, empty: list[Any] | None = None) -> list[tuple[Any, ...]]:
    try:
        opened = open_database(Settings(database=database))
        try:
            return list(opened.query(sql)[1])
        finally:
            opened.close()
    except DatabaseError:
        if empty is None:
            raise
        return empty


def check(database: str, latest: dict[str, Any], messages: int) -> None:
    assert offset_of(database) == messages
    rows = query(database, "SELECT id, text FROM reports WHERE NOT deleted")
    assert len(rows) == len(latest)
    assert dict(rows) == {id_: record["text"] for id_, record in latest.items()}
    events = query(database, "SELECT report_id, position, pt, negated FROM events ORDER BY 1, 2")
    assert events == sorted(
        (id_, i, e["pt"], e["negated"])
        for id_, record in latest.items()
        for i, e in enumerate(record["events"])
    )
    pairs = query(database, "SELECT count(*), count(DISTINCT report_id) FROM pairs")
    assert pairs == [(sum(len(r["events"]) for r in latest.values()), len(latest))]
