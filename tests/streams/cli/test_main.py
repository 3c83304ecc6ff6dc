"""The command line as a whole, and the commands of the pipeline and the topics."""

from __future__ import annotations

import subprocess
import sys

import orjson
from typer.testing import CliRunner

from streams import __version__
from streams.__main__ import app
from streams.topics import TOPICS

runner = CliRunner()


def test_schema_prints_every_topic_with_records() -> None:
    answer = runner.invoke(app, ["schema"])
    assert answer.exit_code == 0
    assert set(orjson.loads(answer.stdout)) == {t.name for t in TOPICS if t.record is not None}


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
