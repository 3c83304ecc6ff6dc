"""A real Kafka broker for the integration tests, and processes that use it."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from models.releases.manifest import Release
from tests.integration import processes
from tests.integration.kafka_server import KafkaUnavailable, LocalKafka, own_kafka
from tests.integration.long_tests import FIRST, LONG, long_test
from tests.integration.site import Site

#: Last lines of each log of a test that has failed.
LOG_LINES = 40


class SessionBroker:
    """One broker for all tests, also with a listener that wants TLS and a password. It is replaced where a
    test left it in a state that cannot be cleaned at once.
    """

    def __init__(self) -> None:
        self._kafka = _found()

    def clean(self) -> LocalKafka:
        """The broker without topics and without consumer groups."""
        if not self._is_cleaned():
            self.stop()
            self._kafka = _found()
        return self._kafka

    def _is_cleaned(self) -> bool:
        if self._kafka.process is None:
            return False
        try:
            processes.remove_everything(self._kafka.bootstrap)
        except Exception:  # of whatever kind: the next test must not see it
            return False
        return True

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
def misconfigured_kafka(session_broker: SessionBroker) -> Iterator[LocalKafka]:
    """The clean broker for a test that gives topics wrong settings. The next test gets another broker: under
    load a new topic was seen with a setting of a deleted one of its name.
    """
    yield session_broker.clean()
    session_broker.stop()


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


def _found() -> LocalKafka:
    try:
        return own_kafka(secure=True)
    except KafkaUnavailable as reason:
        if os.environ.get("PV_REQUIRE_KAFKA") == "1":
            pytest.fail(str(reason))
        pytest.skip(str(reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the ends of what the processes of a failed test have logged."""
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and isinstance(folder, Path):
        for log in sorted(folder.rglob("*log")):
            if log.is_file():
                lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
                report.sections.append((str(log.relative_to(folder)), "\n".join(lines)))
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of this folder and those below it that take many minutes run only with PV_LONG_TESTS=1. Those of
    half a minute come first in each half of the tests, so that none of two processes ends with one while the
    other has nothing left.
    """
    here = Path(__file__).parent
    first: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        is_here = here in item.path.parents
        if is_here and item.path.stem in LONG:
            item.add_marker(long_test)
        (first if is_here and item.path.stem in FIRST else others).append(item)
    half = len(others) // 2
    items[:] = first[::2] + others[:half] + first[1::2] + others[half:]
