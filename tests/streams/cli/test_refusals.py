"""The file of refused lines, the counts by reason, and options that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from streams.broker.embedded import EmbeddedBroker
from streams.cli.input import AS_IT_IS, how_to_read
from streams.cli.refusals import RejectedFile, counted
from streams.input_rows import Refusal
from tests.streams.cli.command_line import CommandLine


def test_a_refused_line_goes_to_the_file_with_its_number_reason_and_original(tmp_path: Path) -> None:
    path = tmp_path / "rejected.jsonl"
    with RejectedFile(path) as file:
        file.write("posts", Refusal(3, "Invalid JSON", b"cut \xff off\n"))
    assert json.loads(path.read_bytes()) == {
        "topic": "posts",
        "line": 3,
        "reason": "Invalid JSON",
        "original": "cut \\xff off",
    }
    assert path.stat().st_mode & 0o077 == 0


def test_reasons_are_counted_the_most_frequent_first() -> None:
    assert counted([("posts", "a"), ("posts", "b"), ("posts", "b")]) == [
        "posts: 2 refused: b",
        "posts: 1 refused: a",
    ]


@pytest.mark.parametrize("column", ["text", "text=", "colour=x"])
def test_a_wrong_option_is_an_error_of_the_user(column: str, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter):
        how_to_read([column], None, None, None)
    with pytest.raises(typer.BadParameter):
        how_to_read(["text=a", "text=b"], None, None, None)
    with pytest.raises(typer.BadParameter):
        how_to_read(None, "no-such", None, None)
    with pytest.raises(typer.BadParameter):
        how_to_read(None, None, None, tmp_path / "none" / "x")
    path = tmp_path / "posts.csv"
    path.write_bytes(b"id,text\n1,rash\n")
    with pytest.raises(typer.BadParameter, match="no column 'x'"):
        how_to_read(["text=x"], None, None, None).open(path)
    with AS_IT_IS.open(path) as file:
        assert len(list(file.rows)) == 1


def test_ingest_writes_the_refused_lines_and_sends_the_others(pvstream: CommandLine, tmp_path: Path) -> None:
    posts, rejected = tmp_path / "posts.jsonl", tmp_path / "rejected.jsonl"
    good = [json.dumps({"id": f"post-{i}", "text": "a rash"}) for i in range(3)]
    bad = ['{"id": "empty", "text": ""}', "no JSON"]
    posts.write_text("\n".join([good[0], bad[0], good[1], bad[1], good[2]]) + "\n")
    with EmbeddedBroker() as broker:
        pvstream.set("PV_BROKER", f"kafka://{broker.bootstrap}")
        assert pvstream("topics", "--create").code == 0
        answer = pvstream("ingest", "posts", posts, "--rejected", rejected)
        sent = pvstream("tail", "posts", "--until-end", "--json").out.splitlines()
    assert (answer.code, answer.out) == (1, "")
    assert "posts: 3 sent and confirmed, 2 lines refused" in answer.one_line
    assert sorted(json.loads(line)["id"] for line in sent) == ["post-0", "post-1", "post-2"]
    kept = [json.loads(line) for line in rejected.read_text().splitlines()]
    assert [(line["topic"], line["line"], line["original"]) for line in kept] == [
        ("posts", 2, bad[0]), ("posts", 4, bad[1]),
    ]  # fmt: skip
    assert all(line["reason"] for line in kept)
    assert rejected.stat().st_mode & 0o077 == 0
