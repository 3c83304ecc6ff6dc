"""Checks that the Kafka the integration tests run against behaves as they assume."""

from __future__ import annotations

import asyncio
import shutil
import socket
import uuid
from pathlib import Path

import pytest
from aiokafka import (  # type: ignore[import-untyped,unused-ignore]
    AIOKafkaConsumer,
    AIOKafkaProducer,
    TopicPartition,
)
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped,unused-ignore]

from tests.integration.kafka_server import (
    PORT_TAKEN,
    KafkaUnavailable,
    LocalKafka,
    _complaint,
    find_kafka,
    own_kafka,
)

pytestmark = pytest.mark.kafka


async def produce(bootstrap: str, topic: str, value: bytes) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    finally:
        await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
    await producer.start()
    try:
        await producer.send_and_wait(topic, value)
    finally:
        await producer.stop()


async def read_first(bootstrap: str, topic: str) -> bytes | None:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        record = await asyncio.wait_for(consumer.getone(), timeout=30)
        value: bytes | None = record.value
        return value
    finally:
        await consumer.stop()


def test_an_acknowledged_message_survives_a_kill_of_the_broker(kafka: LocalKafka) -> None:
    topic = f"kill-{uuid.uuid4().hex}"
    asyncio.run(produce(kafka.bootstrap, topic, b"before the kill"))
    kafka.kill()
    kafka.restart()
    assert asyncio.run(read_first(kafka.bootstrap, topic)) == b"before the kill"


def test_kafka_is_unavailable_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PV_TEST_KAFKA", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KafkaUnavailable, match=r"^no java on PATH.*$") as caught:
        find_kafka()
    assert "\n" not in str(caught.value)


def test_kafka_is_unavailable_without_maven_or_cached_jars(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java to leave on PATH")
    (tmp_path / "java").symlink_to(java)
    monkeypatch.delenv("PV_TEST_KAFKA", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(KafkaUnavailable, match=r"^no mvn on PATH.*$") as caught:
        find_kafka()
    assert "\n" not in str(caught.value)


def test_a_port_that_is_taken_after_the_look_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[socket.socket] = []
    real = LocalKafka._format

    def take_a_port_once(self: LocalKafka) -> None:
        if not taken:
            taken.append(socket.create_server(("127.0.0.1", int(self.bootstrap.rpartition(":")[2]))))
        real(self)

    monkeypatch.setattr(LocalKafka, "_format", take_a_port_once)
    try:
        kafka = own_kafka()
    except KafkaUnavailable as reason:
        for first in taken:
            first.close()
        pytest.skip(str(reason))
    (first,) = taken
    with first:
        assert int(kafka.bootstrap.rpartition(":")[2]) != first.getsockname()[1]
        kafka.stop()


def test_what_ended_a_broker_is_told_and_not_what_it_got_over(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text(
        "INFO registerBroker: event failed with NotControllerException\n"
        "ERROR [KafkaServer id=1] Fatal error during startup\n"
        f"java.net.BindException: {PORT_TAKEN}\n"
    )
    assert PORT_TAKEN in _complaint(log)
    log.write_text("INFO a NotControllerException\nERROR no space left on device\n")
    assert _complaint(log) == "ERROR no space left on device"
    log.write_text("")
    assert _complaint(log) == "it said nothing"
