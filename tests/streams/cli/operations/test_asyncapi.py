"""The AsyncAPI document is valid by the official schema, and complete.

tests/data/asyncapi/3.1.0.json.gz is schemas/3.1.0-without-$id.json of the npm package @asyncapi/specs 6.11.1,
Apache-2.0.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
import yaml
from jsonschema import Draft7Validator
from typer.testing import CliRunner

from streams.__main__ import app
from streams.agents.pipeline import STAGES
from streams.cli.operations.asyncapi import document
from streams.dead_letters.headers import Fault, Reason, dead_letter_headers
from streams.settings import Settings
from streams.topics import TOPICS
from tests.fakes import inbound

SCHEMA = Path(__file__).parents[3] / "data/asyncapi/3.1.0.json.gz"
LOGINS = [
    {},
    {"broker": "kafka://one:9092,two:9093", "replication": 3, "prefix": "staging."},
    {"broker": "kafka://one:9092", "security": "SASL_SSL", "sasl_username": "ann", "sasl_password": "hidden"},
    {
        "broker": "kafka://one:9092",
        "security": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_token_file": "/run/token",
    },
]


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    return Draft7Validator(orjson.loads(gzip.decompress(SCHEMA.read_bytes())))


@pytest.mark.parametrize("login", LOGINS)
def test_the_document_is_valid_by_the_official_schema(login: Any, validator: Draft7Validator) -> None:
    content = orjson.loads(orjson.dumps(document(Settings(**login))))
    assert [error.message[:300] for error in validator.iter_errors(content)] == []
    assert "hidden" not in str(content)
    assert "ann" not in str(content.get("servers")) + str(content["components"].get("securitySchemes"))
    content["channels"]["posts"]["bindings"]["kafka"]["partitions"] = "four"
    assert list(validator.iter_errors(content)), "the schema does check the bindings"


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from references(inner)


def test_every_reference_leads_to_something() -> None:
    content = document(Settings(broker="kafka://one:9092", security="SASL_SSL"))
    found = set(references(content))
    assert len(found) > 30
    for reference in found:
        target: Any = content
        for name in reference.removeprefix("#/").split("/"):
            assert name in target, reference
            target = target[name]


def test_a_key_that_is_no_id_of_a_report_is_not_described_as_one() -> None:
    messages = document(Settings())["components"]["messages"]
    keys = {name: message["bindings"]["kafka"]["key"] for name, message in messages.items()}
    ids = {name for name, key in keys.items() if key.get("description") == "the id of the report"}
    assert ids == messages.keys() - {"Announcement", "Signal", "Cursor", "DeadLetter", "Tombstone"}
    assert "maxLength" not in keys["Signal"]


def test_every_topic_stage_and_header_is_in_it_with_the_prefix() -> None:
    content = document(Settings(prefix="staging.", partitions=6, replication=3))
    addresses = {name: channel["address"] for name, channel in content["channels"].items()}
    assert addresses == {topic.name: f"staging.{topic.name}" for topic in TOPICS}
    binding = content["channels"]["events"]["bindings"]["kafka"]
    assert (binding["partitions"], binding["replicas"]) == (6, 3)
    assert binding["topicConfiguration"]["min.insync.replicas"] == 2
    operations = content["operations"]
    for stage in STAGES:
        for source in stage.sources:
            which = "" if source is stage.source else f".{source.name}"
            received = operations[f"{stage.name}.receive{which}"]
            assert received["channel"]["$ref"] == f"#/channels/{source.name}"
            assert received["bindings"]["kafka"]["groupId"]["const"] == f"staging.pv-{stage.name}"
            refused = operations[f"{stage.name}.refuse{which}"]["channel"]["$ref"]
            assert refused == f"#/channels/{source.name}.dead"
        assert operations[f"{stage.name}.send"]["channel"]["$ref"] == f"#/channels/{stage.sink.name}"
    used = {operation["channel"]["$ref"] for operation in operations.values()}
    assert used == {f"#/channels/{topic.name}" for topic in TOPICS}
    letter = content["components"]["messages"]["DeadLetter"]["headers"]["properties"]
    written = dead_letter_headers(inbound(0, b"{"), "ner", Fault("poison", "x"), "0123456789ab")
    assert {name for name, _ in written} <= letter.keys()
    assert letter["pv-reason"]["enum"] == [*get_args(Reason)]


def test_the_command_prints_it_as_json_and_as_yaml() -> None:
    json = CliRunner().invoke(app, ["asyncapi"], env={"PV_PREFIX": "team-b_"})
    yml = CliRunner().invoke(app, ["asyncapi", "--yaml"], env={"PV_PREFIX": "team-b_"})
    assert (json.exit_code, yml.exit_code) == (0, 0), json.output + yml.output
    content = orjson.loads(json.stdout)
    assert content == yaml.safe_load(yml.stdout)
    assert content["channels"]["posts"]["address"] == "team-b_posts"
