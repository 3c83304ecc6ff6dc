from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from streams.__main__ import app
from streams.topics import TOPICS

runner = CliRunner()


def test_schema_prints_every_topic_with_records() -> None:
    answer = runner.invoke(app, ["schema"])
    assert answer.exit_code == 0
    assert set(orjson.loads(answer.stdout)) == {t.name for t in TOPICS if t.record is not None}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["worker", "--stage", "nor"], "no stage 'nor'"),
        (["ingest", "events", "-"], "is none of posts, sentences, questions"),
        (["ingest", "posts", "no-such-file.jsonl"], "no file no-such-file.jsonl"),
        (["demo", "--input", "posts"], "TOPIC=FILE"),
        (["demo", "--input", "events=pyproject.toml"], "TOPIC=FILE"),
        (["topics"], "PV_BROKER"),
        (["tail", "events"], "PV_BROKER"),
    ],
)
def test_a_mistake_is_told_in_words_and_ends_with_exit_code_2(arguments: list[str], said: str) -> None:
    answer = runner.invoke(app, arguments, env={"PV_BROKER": "embedded", "COLUMNS": "200"})
    assert answer.exit_code == 2
    assert said in " ".join(answer.output.replace("│", " ").split())


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    answer = runner.invoke(app, ["topics"], env={"PV_BROKER": "localhost:9092", "COLUMNS": "200"})
    assert answer.exit_code == 2
    assert "PV_BROKER" in answer.output
