"""A real Kafka broker for the integration tests, and releases that load at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.releases.manifest import Release
from models.types import TASKS
from tests.integration import processes
from tests.integration.kafka_server import KafkaServer, KafkaUnavailable, LocalKafka, find_kafka
from tests.integration.site import Site
from tests.tiny_releases import tiny_release


class SessionBroker:
    """One broker for all tests; it is replaced where a test left it in a state that cannot be cleaned."""

    def __init__(self) -> None:
        self._kafka = _local(_found())

    def clean(self) -> LocalKafka:
        """The broker without topics and without consumer groups."""
        try:
            processes.remove_everything(self._kafka.bootstrap)
        except Exception:  # of whatever kind: the next test must not see it
            self.stop()
            self._kafka = _local(_found())
        return self._kafka

    def stop(self) -> None:
        self._kafka.stop()


@pytest.fixture(scope="session")
def session_broker() -> Iterator[SessionBroker]:
    broker = SessionBroker()
    yield broker
    broker.stop()


@pytest.fixture
def kafka(session_broker: SessionBroker) -> LocalKafka:
    """The broker of the session, without topics and consumer groups."""
    return session_broker.clean()


@pytest.fixture
def secure_kafka() -> Iterator[LocalKafka]:
    """A broker for one test that also has a listener with TLS and passwords."""
    with _found(secure=True) as server:
        yield _local(server)


@pytest.fixture(scope="session")
def tiny(tiny_bert: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Release]:
    """Task to a tiny release."""
    root = tmp_path_factory.mktemp("tiny")
    return {task: tiny_release(task, tiny_bert, root) for task in TASKS}


@pytest.fixture(scope="session")
def pinned(tiny: dict[str, Release]) -> str:
    """PV_RELEASES with a tiny release for every task."""
    return json.dumps({task: str(release.path) for task, release in tiny.items()})


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    """The clean broker with all topics, and the releases that ship."""
    return Site(kafka, tmp_path)


@pytest.fixture
def tiny_site(kafka: LocalKafka, tmp_path: Path, pinned: str) -> Site:
    """The clean broker with all topics; every stage runs a tiny release."""
    return Site(kafka, tmp_path, PV_RELEASES=pinned)


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
