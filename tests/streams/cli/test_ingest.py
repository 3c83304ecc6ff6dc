"""Reading of reports, the file of refused lines, the counts by reason, and rates."""

from __future__ import annotations

import asyncio
import io
import json
import time
from pathlib import Path

import orjson

from models.files.row import MAX_LINE
from models.files.text_file import open_file
from streams.broker.embedded import EmbeddedBroker
from streams.cli.ingest import RateLimit
from streams.cli.refusals import counted
from streams.input_rows import Refusal, RowReader
from streams.records import Report
from tests.streams.cli.command_line import CommandLine


def test_reasons_are_counted_the_most_frequent_first() -> None:
    assert counted([("posts", "a"), ("posts", "b"), ("posts", "b")]) == [
        "posts: 2 refused: b",
        "posts: 1 refused: a",
    ]


def test_ingest_writes_the_refused_lines_and_sends_the_others(pvstream: CommandLine, tmp_path: Path) -> None:
    posts, rejected = tmp_path / "posts.jsonl", tmp_path / "rejected.jsonl"
    good = [json.dumps({"id": f"post-{i}", "text": "a rash"}) for i in range(3)]
    bad = ['{"id": "empty", "text": ""}', "no JSON \udcff"]
    lines = "\n".join([good[0], bad[0], good[1], bad[1], good[2]]) + "\n"
    posts.write_bytes(lines.encode(errors="surrogateescape"))
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
        ("posts", 2, bad[0]), ("posts", 4, "no JSON \\xff"),
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
