"""The command line as a whole, and the lists that `pvstream forget` reads."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from streams import __version__
from streams.__main__ import app
from streams.broker.embedded import EmbeddedBroker
from streams.cli import topic_commands
from streams.intake import forget as forgetting
from streams.settings import Settings
from streams.topics import TOPICS
from tests.streams.cli.command_line import CommandLine

runner = CliRunner()


def test_the_schema_of_every_topic_the_version_and_an_invalid_setting_are_printed() -> None:
    answer = runner.invoke(app, ["schema"])
    assert answer.exit_code == 0
    assert set(orjson.loads(answer.stdout)) == {t.name for t in TOPICS if t.record is not None}
    answer = runner.invoke(app, ["--version"], env={"PV_BROKER": "nonsense"})
    assert (answer.exit_code, answer.stdout) == (0, f"pvstream {__version__}\n")
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


KEY = "a key of some length"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ids_and_handles_of_a_windows_file_are_those_of_reports(
    pvstream: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mark: str
) -> None:
    sent: list[bytes] = []

    async def send(_settings: object, keys: list[bytes], _topics: object) -> None:
        sent.extend(keys)

    monkeypatch.setattr(forgetting, "_send", send)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{mark}first\r\nsecond\r\n"))
    with EmbeddedBroker() as broker:
        pvstream.set("PV_BROKER", f"kafka://{broker.bootstrap}")
        assert pvstream("forget", "-").code == 0
    assert sorted(sent) == [b"first", b"second"]
    (tmp_path / "handles").write_text(f"{mark}@Ann\nbob\n", encoding="utf-8")
    (tmp_path / "plain").write_text("ann\nbob\n", encoding="utf-8")
    settings = Settings.model_validate({"author_key": KEY})
    read, plain = (topic_commands._hashes(settings, None, tmp_path / name) for name in ("handles", "plain"))
    assert read == plain


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_ids_that_are_not_in_utf_8_are_refused_in_one_line_before_anything_is_deleted(
    pvstream: CommandLine, monkeypatch: pytest.MonkeyPatch, errors: str
) -> None:
    """What standard input makes of such bytes depends on the locale."""
    lines = io.TextIOWrapper(io.BytesIO(b"first\ncaf\xe9\n"), encoding="utf-8", errors=errors)
    monkeypatch.setattr("sys.stdin", lines)
    with EmbeddedBroker() as broker:
        pvstream.set("PV_BROKER", f"kafka://{broker.bootstrap}")
        answer = pvstream("forget", "-")
    assert answer.code == 2
    assert "the ids must be in UTF-8; nothing was deleted" in answer.one_line
