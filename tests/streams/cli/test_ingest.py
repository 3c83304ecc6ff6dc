from __future__ import annotations

import asyncio
import io
import time

import orjson

from streams.cli.ingest import MAX_LINE, Pace, Refusal, read_reports
from streams.records import Report


def read(data: bytes) -> list[Report | Refusal]:
    return list(read_reports(io.BytesIO(data), "posts"))


def test_good_lines_become_reports_of_their_topic() -> None:
    first, second = read(b'{"id": "a", "text": "one"}\n\n{"id": "b", "text": "two", "drug": "x"}')
    assert isinstance(first, Report) and isinstance(second, Report)
    assert (first.id, first.source, second.drug) == ("a", "posts", "x")
    assert first.received_at is not None


def test_a_refusal_names_its_line_and_does_not_quote_it() -> None:
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


def test_what_only_the_pipeline_may_say_is_not_taken_from_a_line() -> None:
    line = {"id": "a", "text": "b", "source": "mentions", "releases": {"ner": "x"}, "record_id": "forged"}
    (report,) = read(orjson.dumps(line))
    assert isinstance(report, Report)
    assert (report.source, report.releases, report.record_id) == ("posts", {}, "")


async def test_a_pace_holds_back_and_none_does_not() -> None:
    started = time.monotonic()
    pace = Pace(100)
    for _ in range(10):
        await pace.turn()
    assert time.monotonic() - started >= 0.09
    free = Pace(0)
    await asyncio.wait_for(asyncio.gather(*(free.turn() for _ in range(1000))), 1)
