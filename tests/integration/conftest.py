"""Gives the integration tests real Kafka brokers: one for the whole session, or one of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.integration.kafka_server import KafkaServer, KafkaUnavailable, LocalKafka, find_kafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    with _found() as server:
        yield server


@pytest.fixture
def own_kafka() -> Iterator[LocalKafka]:
    """A broker for one test, without the topics that another test left."""
    with _found() as server:
        yield _local(server)


@pytest.fixture
def secure_kafka() -> Iterator[LocalKafka]:
    """A broker of its own that also has a listener with TLS and passwords."""
    with _found(secure=True) as server:
        yield _local(server)


def _local(server: KafkaServer) -> LocalKafka:
    if not isinstance(server, LocalKafka):
        pytest.skip("needs a broker of its own; PV_TEST_KAFKA names a shared one")
    return server


def _found(*, secure: bool = False) -> KafkaServer:
    try:
        return find_kafka(secure=secure)
    except KafkaUnavailable as reason:
        if os.environ.get("PV_REQUIRE_KAFKA") == "1":
            pytest.fail(str(reason))
        pytest.skip(str(reason))
