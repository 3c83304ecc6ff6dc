"""Variables and arguments that are wrong: exit code 2, and what is wrong is said before anything is done."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from streams.cli.environment import check_environment
from streams.settings import Settings
from tests.streams.cli.command_line import NOWHERE, CommandLine


def test_every_setting_and_the_variables_of_the_tests_are_accepted() -> None:
    names = [f"PV_{name.upper()}" for name in Settings.model_fields]
    check_environment(dict.fromkeys([*names, "PV_TEST_DATA", "PV_REQUIRE_KAFKA", "PATH", "pv_batch"], "1"))


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


#: The broker that is set, and the arguments with a part of what is said.
WRONG = {
    "": f"""
announce docs -> set PV_BROKER=
rollback ner {NOWHERE} -> set PV_BROKER=
replay posts -> set PV_BROKER=
redrive posts.dead -> set PV_BROKER=
terminology diff {NOWHERE} {NOWHERE} -> set PV_BROKER=
rollback nor {NOWHERE} -> 'nor' is none of ner, acronym,
evaluate nor --data . -> 'nor' is none of ner, acronym,
replay posts --release nor=x -> expected TASK=RELEASE
replay posts --release ner -> expected TASK=RELEASE
replay posts --compare ner= -> expected TASK=RELEASE
evaluate posts --split psytar_test -> posts psytar_test requires --data
evaluate posts --release relation=docs -> posts is evaluated with a release of ner and normalization
evaluate posts --release x -> expected TASK=RELEASE
evaluate ner -> ner psytar_test requires --data
evaluate ner --release x --release y -> ner is evaluated with one release
evaluate idiom --data . -> no release of idiom comes with pvstream
releases --worker 127.0.0.1:http -> '127.0.0.1:http' is not host:port
releases --worker '127.0.0.1:80 80' -> '127.0.0.1:80 80' is not host:port
""",
    "embedded": """
worker --stage nor -> is not one of 'ner', 'acronym'
ingest events - -> is not one of 'posts', 'sentences', 'questions'
ingest posts no-such-file.jsonl -> no file no-such-file.jsonl
demo --input posts -> TOPIC=FILE
demo --input events=pyproject.toml -> TOPIC=FILE
demo --input posts=LICENSE --input posts=Makefile -> posts has a file already
replay posts --release ner=a --release ner=b -> ner has a release already
replay posts --output none/x.jsonl -> none/x.jsonl: there is no folder
replay posts --html docs -> docs: is a folder
terminology diff a b --json none/x -> none/x: there is no folder
evaluate posts --json LICENSE/x -> LICENSE/x: there is no folder
demo --report docs -> docs: is a folder
signals --html none/x -> none/x: there is no folder
topics -> PV_BROKER
tail events -> PV_BROKER
tail events --latest -> PV_BROKER
tail posts.dead --latest -> dead letters have no latest record
tail events --until-end -> PV_BROKER
status -> PV_BROKER
status --patience -1 -> --patience
source mastodon --sweep 0 -> greater than or equal to 0.1
dead -> PV_BROKER
dead posts.dead 0 -> one letter has a partition and an offset
dead posts.dead --reason bored -> is none of bad_record, poison
demo --limit MANY -> less than or equal to 1000000000
demo --show MANY -> less than or equal to 1000000000
tail events --count MANY -> less than or equal to 1000000000
tail events --latest --count MANY -> less than or equal to 1000000000
dead posts.dead --limit MANY -> less than or equal to 1000000000
redrive posts.dead --limit MANY -> less than or equal to 1000000000
terminology diff a b --show MANY -> less than or equal to 1000000000
evaluate posts --limit MANY -> less than or equal to 1000000000
query SELECT --limit MANY -> less than or equal to 1000000000
signals --show MANY -> less than or equal to 1000000000
signals --every 1e300 -> less than or equal to 31622400
status --patience 1e300 -> less than or equal to 31622400
source rss --every 1e300 -> less than or equal to 31622400
""",
    "localhost:9092": """
topics -> PV_BROKER
""",
    "kafka://127.0.0.1:1": """
tail nosuch | schema nosuch | dead posts | dead nosuch 0 0 | redrive posts | skip nosuch 0 0 --group ner
redrive posts.dead --reason nosuch | skip posts 0 0 --group nosuch | replay nosuch | topics nosuch
replay posts --against nofile | replay posts --release ner=/nonexistent | replay posts --from nosuch
replay posts --to nosuch | replay posts --to-prefix posts | rollback ner not-a-version | export docs
terminology diff /nonexistent /nonexistent | evaluate posts --release ner=/nonexistent | evaluate nosuch
evaluate ner --data /nonexistent | evaluate posts --split nosuch | announce /nonexistent | nosuch
sign /nonexistent --key LICENSE | sign docs --key /nonexistent | announce docs --key /nonexistent
verify /nonexistent | rollback nosuch 000000000000
status --worker nonsense | releases --worker nonsense
terminology nosuch | demo --column x --input posts=LICENSE
web --terminology /nonexistent | web --terminology LICENSE | signals --source nosuch | forget
signals --level nosuch | signals --criterion nosuch | signals --until nosuch | signals --html docs
source x -> needs a bearer token in PV_X_TOKEN_FILE
replay posts --into events -> events is a topic of the pipeline
source mastodon -> needs a server
source rss -> needs at least one feed
source telex -> 'telex' is none of bluesky, x, mastodon, rss, ndjson
source rss --feed nonsense | source bluesky --topic nosuch
demo --input nosuch=LICENSE | demo --input posts=/nonexistent | ingest nosuch -
demo --encoding nosuch --input posts=LICENSE | ingest posts /nonexistent | reviews | reviews nosuch
ingest posts LICENSE --encoding nosuch | ingest posts LICENSE --column nosuch
ingest posts LICENSE --column text= | ingest posts LICENSE --column colour=x
ingest posts LICENSE --column text=a --column text=b | ingest posts LICENSE --rejected none/x
annotate LICENSE --format parquet | annotate LICENSE --format xml | annotate LICENSE --topic events
annotate LICENSE --release acronym=tests | cases export --format xml
""".replace(" | ", "\n"),
}
CASES = [
    (broker, *line.partition(" -> ")[::2]) for broker, lines in WRONG.items() for line in lines.split("\n")
]


@pytest.mark.parametrize(("broker", "arguments", "message"), [case for case in CASES if case[1]])
def test_a_wrong_argument_ends_with_exit_code_2(
    broker: str, arguments: str, message: str, pvstream: CommandLine, tmp_path: Path
) -> None:
    if broker:
        pvstream.set("PV_BROKER", broker)
    pvstream.set("PV_DATABASE", str(tmp_path / "pv.duckdb"))
    answer = pvstream(*shlex.split(arguments.replace("MANY", "9" * 20)))
    assert answer.code == 2, answer.one_line
    assert message in answer.one_line
