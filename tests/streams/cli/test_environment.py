from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from streams.cli.environment import check_environment
from streams.settings import Settings
from tests.streams.cli.command_line import CommandLine


def test_every_setting_and_the_variables_of_the_tests_are_accepted() -> None:
    names = [f"PV_{name.upper()}" for name in Settings.model_fields]
    check_environment(dict.fromkeys([*names, "PV_TEST_KAFKA", "PV_REQUIRE_KAFKA", "PATH", "pv_batch"], "1"))


def test_every_variable_that_the_test_suite_reads_is_accepted() -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parents[2].rglob("*.py")]
    names = {name for source in sources for name in re.findall(r'environ\.get\("(PV_\w+)"', source)}
    assert {"PV_TEST_DATA", "PV_TEST_DEVICE"} <= names
    check_environment(dict.fromkeys(names, "1"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PV_BATCHES", "PV_BATCHES is not a setting; did you mean PV_BATCH?"),
        ("PV_SASL_PASWORD", "PV_SASL_PASWORD is not a setting; did you mean PV_SASL_PASSWORD?"),
        ("PV_HTP_PORT", "PV_HTP_PORT is not a setting; did you mean PV_HTTP_PORT?"),
        ("PV_XYZZY", "PV_XYZZY is not a setting"),
        ("pv_batches", "pv_batches is not a setting; did you mean PV_BATCH?"),
    ],
)
def test_another_name_is_refused_with_the_nearest_setting(name: str, message: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        check_environment({name: "secret-value"})
    assert str(refused.value) == message


def test_the_variables_that_kubernetes_sets_for_a_service_are_accepted() -> None:
    links = {
        "PV_WORKER_SERVICE_HOST": "10.0.0.1",
        "PV_WORKER_SERVICE_PORT": "8000",
        "PV_WORKER_SERVICE_PORT_HTTP": "8000",
        "PV_WORKER_PORT": "tcp://10.0.0.1:8000",
        "PV_WORKER_PORT_8000_TCP_ADDR": "10.0.0.1",
    }
    check_environment(links)
    with pytest.raises(typer.BadParameter, match="PV_WORKER_PORT is not a setting"):
        check_environment({"PV_WORKER_PORT": "8000"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["schema"], ["topics"], ["up"], ["demo"], ["worker", "--stage", "ner"], ["tail", "events"],
        ["sign", "x", "--key", "y"], ["releases"], ["terminology", "diff", "a", "b"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_command_refuses_a_misspelt_variable(pvstream: CommandLine, arguments: list[str]) -> None:
    pvstream.set("PV_BATCHES", "3")
    answer = pvstream(*arguments)
    assert answer.code == 2
    assert "PV_BATCHES is not a setting; did you mean PV_BATCH?" in answer.one_line


def test_a_setting_that_must_be_json_and_is_not_is_named(pvstream: CommandLine) -> None:
    pvstream.set("PV_RELEASES", "{ner: x}")
    answer = pvstream("releases")
    assert answer.code == 2
    assert '"releases"' in answer.one_line
    assert "must be JSON" in answer.one_line


def test_secrets_given_twice_are_named_in_one_line(pvstream: CommandLine) -> None:
    pvstream.set("PV_SASL_PASSWORD", "word-one")
    pvstream.set("PV_SASL_PASSWORD_FILE", "/no/such/file")
    answer = pvstream("topics")
    assert answer.code == 2
    assert "PV_SASL_PASSWORD and PV_SASL_PASSWORD_FILE are both set" in answer.one_line
    assert "word-one" not in answer.one_line


def test_a_replay_into_a_topic_of_the_pipeline_is_refused_before_the_broker_is_asked(
    pvstream: CommandLine,
) -> None:
    pvstream.set("PV_BROKER", "kafka://127.0.0.1:1")
    answer = pvstream("replay", "posts", "--into", "events")
    assert answer.code == 2
    assert "events is a topic of the pipeline" in answer.one_line
