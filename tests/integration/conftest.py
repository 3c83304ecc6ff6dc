"""Gives the integration tests one real Kafka broker for the whole session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.integration.kafka_server import KafkaServer, KafkaUnavailable, LocalKafka, find_kafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    try:
        server = find_kafka()
    except KafkaUnavailable as reason:
        if os.environ.get("PV_REQUIRE_KAFKA") == "1":
            pytest.fail(str(reason))
        pytest.skip(str(reason))
    with server:
        yield server


@pytest.fixture
def own_kafka() -> Iterator[KafkaServer]:
    """A broker for one test, without the topics that another test left."""
    try:
        server = find_kafka()
    except KafkaUnavailable as reason:
        if os.environ.get("PV_REQUIRE_KAFKA") == "1":
            pytest.fail(str(reason))
        pytest.skip(str(reason))
    with server:
        if not isinstance(server, LocalKafka):
            pytest.skip("needs a broker of its own; PV_TEST_KAFKA names a shared one")
        yield server
