from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from streams.settings import Settings


def test_every_setting_has_a_description() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name


def test_brokers_are_given_as_kafka_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PV_BROKER", "kafka://one:9092,two:9093")
    assert Settings().bootstrap == ["one:9092", "two:9093"]


@pytest.mark.parametrize("broker", ["localhost:9092", "http://one:9092", "kafka://", ""])
def test_any_other_kind_of_address_is_refused(broker: str) -> None:
    with pytest.raises(ValidationError, match="kafka://host:port"):
        Settings(broker=broker)


def test_the_password_is_given_to_the_client_and_not_printed() -> None:
    chosen = Settings(
        broker="kafka://one:9092",
        security="SASL_SSL",
        sasl_username="u",
        sasl_password=SecretStr("hidden-word"),
    )
    client = chosen.client()
    assert client["sasl_plain_password"] == "hidden-word"
    assert client["ssl_context"] is not None
    assert client["sasl_mechanism"] == "SCRAM-SHA-512"
    assert "hidden-word" not in repr(chosen)


def test_release_directories_are_given_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PV_RELEASES", '{"ner": "runs/ner/0123456789ab"}')
    assert Settings().releases == {"ner": Path("runs/ner/0123456789ab")}
