"""How a broker is started beside other processes, and what is told of one that does not start."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.integration.kafka_server import (
    PORT_TAKEN,
    KafkaUnavailable,
    LocalKafka,
    _complaint,
    own_kafka,
)

pytestmark = pytest.mark.kafka


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
