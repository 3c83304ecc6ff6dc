"""A machine whose clock is wrong: the broker refuses its records, and it is said why."""

from __future__ import annotations

import time
from functools import partial
from inspect import signature
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer

from tests.integration import processes
from tests.integration.fork_server import ForkedProcess
from tests.integration.site import Site

pytestmark = pytest.mark.kafka


def clock_off_by(seconds: float) -> None:
    """The clock of this process is that far ahead, also for the compiled part of the client."""
    read, send = time.time, AIOKafkaProducer.send
    time.time = lambda: read() + seconds

    async def sent(*arguments: Any, **options: Any) -> Any:
        call = signature(send).bind(*arguments, **options)
        call.arguments["timestamp_ms"] = int(time.time() * 1000)
        return await send(*call.args, **call.kwargs)

    AIOKafkaProducer.send = sent


def run(site: Site, seconds: float, *arguments: str) -> tuple[int, str, str]:
    """The exit code of a command on a machine with that clock, its output and its errors."""
    out, err = site.folder / "out", site.folder / "err"
    for file in (out, err):
        file.unlink(missing_ok=True)
    process = ForkedProcess(arguments, site.env, out, err, partial(clock_off_by, seconds))
    try:
        return process.wait(120), out.read_text(), err.read_text()
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("seconds", "grade", "found"),
    [
        (0, "ok", "within"),
        (-300, "warn", "s behind the broker's"),
        (300, "warn", "ahead"),
        (7200, "fail", "ahead"),
    ],
)
def test_check_compares_the_clock_with_that_of_the_broker(
    tiny_site: Site, seconds: float, grade: str, found: str
) -> None:
    code, out, err = run(tiny_site, seconds, "check", "--json")
    (row,) = [row for row in orjson.loads(out) if row["what"] == "clock"]
    assert (row["grade"], found in row["found"], code) == (grade, True, int(grade == "fail")), (row, err)
    if seconds:
        assert abs(float(row["found"].split()[0]) - abs(seconds)) <= 30


def test_a_worker_and_a_command_whose_clock_is_ahead_say_that_it_is_the_clock(tiny_site: Site) -> None:
    site = tiny_site
    site.produce_samples("posts", 3)
    code, _, err = run(site, 7200, "worker", "--stage", "ner")
    assert (code, "InvalidTimestampError" in err.splitlines()[-1]) == (1, False)
    assert "ner: the broker refuses the time of this machine, 20" in err.splitlines()[-1]
    posts = site.folder / "posts.jsonl"
    posts.write_bytes(orjson.dumps({"id": "a", "text": "zoloft"}) + b"\n")
    code, _, err = run(site, 7200, "ingest", "posts", str(posts))
    assert (code, "the broker refuses the time of this machine" in err) == (1, True), err
    assert processes.count(site.kafka.bootstrap, "mentions") == 0
