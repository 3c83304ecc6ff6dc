"""Records that a real Kafka accepts and no producer should write: a worker passes all of them."""

from __future__ import annotations

import asyncio
import struct
import urllib.request
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.util import calc_crc32c
from confluent_kafka import Producer
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tests.integration import processes
from tests.integration.site import Site, stop

pytestmark = pytest.mark.kafka

#: Accepted by Kafka 4.3 although it is before the year 0.
FAR_PAST = -70_000_000_000_000
#: Place of the checksum in a batch of records; it covers what follows it.
CRC = 17
NAME, RAW = b"QQQQ", b"\xff\xfe\x80\x81"


def report(id_: str, **fields: Any) -> bytes:
    return orjson.dumps({"id": id_, "text": "zoloft gave me insomnia"} | fields)


def produce_raw(bootstrap: str, records: list[tuple[bytes | None, bytes | None, int]]) -> None:
    """Key, value and timestamp in milliseconds (0: now), as a client of another library may send them."""
    producer = Producer({"bootstrap.servers": bootstrap})
    failed: list[object] = []
    for key, value, timestamp in records:
        producer.produce(
            "posts", value=value, key=key, partition=0, timestamp=timestamp,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )  # fmt: skip
    assert producer.flush(30) == 0
    assert failed == []


async def produce_hostile_header(bootstrap: str) -> None:
    """A record whose header has a name that is not UTF-8, between two others in one batch."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        batch = producer.create_batch()
        for i in range(3):
            headers = [(NAME.decode(), b"x")] if i == 1 else []
            batch.append(key=b"h%d" % i, value=report(f"h{i}"), timestamp=None, headers=headers)
        batch.close()
        _rename_header(batch)
        await (await producer.send_batch(batch, "posts", partition=0))


def _rename_header(batch: BatchBuilder) -> None:
    data = bytearray(batch._build())
    place = data.index(NAME)
    data[place : place + len(NAME)] = RAW
    struct.pack_into(">I", data, CRC, calc_crc32c(bytes(data[CRC + 4 :])))
    batch._buffer = data


async def produce_transactions(bootstrap: str) -> None:
    """One transaction that is aborted, and one that is committed."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="test") as producer:
        async with producer.transaction():
            await producer.send_and_wait("posts", key=b"t1", value=report("t1"), partition=0)
        with pytest.raises(InterruptedError):
            async with producer.transaction():
                await producer.send_and_wait("posts", key=b"aborted", value=report("aborted"), partition=0)
                raise InterruptedError
        async with producer.transaction():
            await producer.send_and_wait("posts", key=b"t2", value=report("t2"), partition=0)


def metric(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def keep_keyless(bootstrap: str, topic: str = "posts") -> None:
    """As a topic is that somebody else created: a compacted one refuses records without a key."""
    entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    (answer,) = processes.admin(bootstrap).incremental_alter_configs([resource]).values()
    answer.result(30)


def produce_hostile(bootstrap: str) -> None:
    """All kinds of such records, and after them one with the id "last"."""
    keep_keyless(bootstrap)
    produce_raw(
        bootstrap,
        [
            (b"a", report("a"), 0),
            (None, None, 0),
            (b"deleted", None, 0),
            (b"past", report("past"), FAR_PAST),
            (None, report("no key"), 0),
            (b"forged", report("forged", source="events", releases={"x": "y"}, likes=3), 0),
        ],
    )
    asyncio.run(produce_hostile_header(bootstrap))
    asyncio.run(produce_transactions(bootstrap))
    produce_raw(bootstrap, [(b"last", report("last"), 0)])


def test_no_record_that_a_broker_accepts_stops_a_worker(tiny_site: Site) -> None:
    site = tiny_site
    bootstrap = site.kafka.bootstrap
    produce_hostile(bootstrap)
    expected = {"a", "no key", "forged", "h0", "h1", "h2", "t1", "t2", "last"}

    def out() -> dict[str, dict[str, Any]]:
        messages = site.read_all("mentions")
        records = [orjson.loads(m.value) for m in messages if m.value is not None]
        return {r["id"]: r for r in records}

    with site.running("worker", "--stage", "ner") as worker:
        processes.wait_until(lambda: "last" in out(), "the last record")
        # The end of the partition is the marker of a transaction, which no consumer is given.
        asyncio.run(produce_transactions(bootstrap))
        processes.wait_until(lambda: metric(site.port, "pv_lag_records{") == 0, "no lag")
        assert metric(site.port, 'pv_records_total{outcome="dropped"') == 1
        stop(worker)
    records = out()
    assert records.keys() == expected
    assert records["forged"]["source"] == "posts"
    assert list(records["forged"]["releases"]) == ["ner"]
    assert records["forged"]["meta"] == {"likes": 3}
    messages = site.read_all("mentions")
    assert [m.key for m in messages if m.value is None] == [b"deleted"]
    (dead,) = site.read_all("posts.dead")
    assert (dead.key, dead.value) == (b"past", report("past"))
    assert dict(dead.headers)["pv-detail"] == b"the timestamp of the record is out of range"
