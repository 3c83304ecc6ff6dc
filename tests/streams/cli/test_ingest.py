"""Reading of reports, the file of refused lines, the counts by reason, options that are wrong, and rates."""

from __future__ import annotations

import asyncio
import io
import json
import time
from pathlib import Path

import orjson
import pytest
import typer

from models.files.reading import open_file
from models.files.row import MAX_LINE
from streams.broker.embedded import EmbeddedBroker
from streams.cli.ingest import RateLimit
from streams.cli.input import AS_IT_IS, how_to_read
from streams.cli.refusals import RejectedFile, counted
from streams.input_rows import Refusal, RowReader
from streams.records import Report
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


def read(data: bytes) -> list[Report | Refusal]:
    reader = RowReader("lines.jsonl")
    return [reader.read(row) for row in open_file(io.BytesIO(data)).rows]


def test_a_refusal_has_the_line_number_without_a_quotation_and_the_next_line_is_read() -> None:
    good, bad, last = read(b'{"id": "a", "text": "one"}\nsecret of a patient\n{"id": "b", "text": "two"}\n')
    assert isinstance(good, Report) and isinstance(last, Report)
    assert isinstance(bad, Refusal)
    assert bad.line == 2
    assert "secret" not in bad.reason
    long = orjson.dumps({"id": "a", "text": "x" * (2 * MAX_LINE)})
    refused, good = read(long + b'\n{"id": "b", "text": "two"}\n')
    assert isinstance(refused, Refusal) and refused.line == 1
    assert isinstance(good, Report) and good.id == "b"


async def test_a_rate_limit_delays_also_after_an_idle_pipe_and_a_rate_of_zero_does_not() -> None:
    started = time.monotonic()
    limit = RateLimit(100)
    for _ in range(10):
        await limit.wait()
    assert time.monotonic() - started >= 0.09
    unlimited = RateLimit(0)
    await asyncio.wait_for(asyncio.gather(*(unlimited.wait() for _ in range(1000))), 1)
    limit = RateLimit(50)
    await asyncio.sleep(0.5)
    began = time.monotonic()
    for _ in range(20):
        await limit.wait()
    assert time.monotonic() - began > 0.25
