"""The command line as a whole, and the commands of the pipeline and the topics."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest
from typer.testing import CliRunner

from streams import __version__
from streams.__main__ import app
from streams.topics import TOPICS

runner = CliRunner()


def test_schema_prints_every_topic_with_records() -> None:
    answer = runner.invoke(app, ["schema"])
    assert answer.exit_code == 0
    assert set(orjson.loads(answer.stdout)) == {t.name for t in TOPICS if t.record is not None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["worker", "--stage", "nor"], "no stage 'nor'"),
        (["ingest", "events", "-"], "is none of posts, sentences, questions"),
        (["ingest", "posts", "no-such-file.jsonl"], "no file no-such-file.jsonl"),
        (["demo", "--input", "posts"], "TOPIC=FILE"),
        (["demo", "--input", "events=pyproject.toml"], "TOPIC=FILE"),
        (["demo", "--input", "posts=LICENSE", "--input", "posts=Makefile"], "posts has a file already"),
        (["replay", "posts", "--release", "ner=a", "--release", "ner=b"], "ner has a release already"),
        (["replay", "posts", "--output", "none/x.jsonl"], "none/x.jsonl: there is no folder"),
        (["replay", "posts", "--html", "docs"], "docs: is a folder"),
        (["terminology", "diff", "a", "b", "--json", "none/x"], "none/x: there is no folder"),
        (["evaluate", "posts", "--json", "LICENSE/x"], "LICENSE/x: there is no folder"),
        (["demo", "--report", "docs"], "docs: is a folder"),
        (["signals", "--html", "none/x"], "none/x: there is no folder"),
        (["topics"], "PV_BROKER"),
        (["tail", "events"], "PV_BROKER"),
        (["tail", "events", "--latest"], "PV_BROKER"),
        (["tail", "posts.dead", "--latest"], "dead letters have no latest record"),
        (["tail", "events", "--until-end"], "PV_BROKER"),
        (["status"], "PV_BROKER"),
        (["status", "--patience", "-1"], "--patience"),
        (["source", "mastodon", "--sweep", "0"], "greater than or equal to 0.1"),
        (["dead"], "PV_BROKER"),
        (["dead", "posts.dead", "0"], "one letter has a partition and an offset"),
        (["dead", "posts.dead", "--reason", "bored"], "is none of bad_record, poison"),
        *(
            ([*command.split(), "9" * 20], "less than or equal to 1000000000")
            for command in (
                "demo --limit",
                "demo --show",
                "tail events --count",
                "tail events --latest --count",
                "dead posts.dead --limit",
                "redrive posts.dead --limit",
                "terminology diff a b --show",
                "evaluate posts --limit",
                "query SELECT --limit",
                "signals --show",
            )
        ),
        *(
            ([*command.split(), "1e300"], "less than or equal to 31622400")
            for command in ("signals --every", "signals --refit", "status --patience", "source rss --every")
        ),
    ],
)
def test_an_invalid_argument_is_reported_and_ends_with_exit_code_2(
    arguments: list[str], message: str
) -> None:
    answer = runner.invoke(app, arguments, env={"PV_BROKER": "embedded", "COLUMNS": "200"})
    assert answer.exit_code == 2
    assert message in " ".join(answer.output.replace("│", " ").split())


def test_the_version_is_that_of_the_package() -> None:
    answer = runner.invoke(app, ["--version"], env={"PV_BROKER": "nonsense"})
    assert (answer.exit_code, answer.stdout) == (0, f"pvstream {__version__}\n")


def test_an_invalid_setting_is_named() -> None:
    answer = runner.invoke(app, ["topics"], env={"PV_BROKER": "localhost:9092", "COLUMNS": "200"})
    assert answer.exit_code == 2
    assert "PV_BROKER" in answer.output


def test_help_is_printed_without_importing_models_or_kafka_clients() -> None:
    code = """
import sys
from streams.__main__ import main
sys.argv = ["pvstream", "--help"]
try:
    main()
except SystemExit:
    print([name for name in ("torch", "faust", "aiokafka") if name in sys.modules])
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "rollback" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "[]"
