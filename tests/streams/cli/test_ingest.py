"""Reading of reports from JSON Lines, and the rate limit."""

from __future__ import annotations

import asyncio
import io
import time

import orjson

from models.files.reading import open_file
from models.files.row import MAX_LINE
from streams.cli.ingest import RateLimit
from streams.input_rows import Refusal, RowReader
from streams.records import Report


def read(data: bytes) -> list[Report | Refusal]:
    reader = RowReader("lines.jsonl")
    return [reader.read(row) for row in open_file(io.BytesIO(data)).rows]


def test_valid_lines_become_reports() -> None:
    first, second = read(b'{"id": "a", "text": "one"}\n\n{"id": "b", "text": "two", "drug": "x"}')
    assert isinstance(first, Report) and isinstance(second, Report)
    assert (first.id, second.drug) == ("a", "x")


def test_a_refusal_has_the_line_number_and_does_not_quote_the_line() -> None:
    good, bad, last = read(b'{"id": "a", "text": "one"}\nsecret of a patient\n{"id": "b", "text": "two"}\n')
    assert isinstance(good, Report) and isinstance(last, Report)
    assert isinstance(bad, Refusal)
    assert bad.line == 2
    assert "secret" not in bad.reason


def test_an_overlong_line_is_refused_and_the_next_one_is_read() -> None:
    long = orjson.dumps({"id": "a", "text": "x" * (2 * MAX_LINE)})
    refused, good = read(long + b'\n{"id": "b", "text": "two"}\n')
    assert isinstance(refused, Refusal) and refused.line == 1
    assert isinstance(good, Report) and good.id == "b"


def test_fields_that_only_the_pipeline_may_fill_in_are_not_read_from_a_line() -> None:
    line = {"id": "a", "text": "b", "source": "mentions", "releases": {"ner": "x"}, "record_id": "forged"}
    (report,) = read(orjson.dumps(line))
    assert isinstance(report, Report)
    assert (report.source, report.releases, report.record_id) == ("", {}, "")


async def test_a_rate_limit_delays_and_a_rate_of_zero_does_not() -> None:
    started = time.monotonic()
    limit = RateLimit(100)
    for _ in range(10):
        await limit.wait()
    assert time.monotonic() - started >= 0.09
    unlimited = RateLimit(0)
    await asyncio.wait_for(asyncio.gather(*(unlimited.wait() for _ in range(1000))), 1)


async def test_after_an_idle_pipe_a_rate_limit_lets_no_burst_through() -> None:
    limit = RateLimit(50)
    await asyncio.sleep(0.5)
    began = time.monotonic()
    for _ in range(20):
        await limit.wait()
    assert time.monotonic() - began > 0.25
