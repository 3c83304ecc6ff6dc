"""The filter for log messages: a library's message passes once in a while, our own always."""

from __future__ import annotations

import logging

import pytest

from streams.broker.client_logs import MAX_MESSAGE, MAX_STACK, PAUSE, RepeatFilter, SafeFormatter
from tests.fakes import Clock


def record(logger: str, template: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord(logger, logging.ERROR, __file__, 1, template, arguments, None)


def test_a_librarys_message_passes_once_until_the_pause_is_over() -> None:
    clock, passed = Clock(), []
    repeat_filter = RepeatFilter(clock)
    for _ in range(100):
        passed.append(repeat_filter.filter(record("aiokafka.conn", "connection failed")))
        clock.now += PAUSE / 40
    assert [i for i, one in enumerate(passed) if one] == [0, 40, 80]


@pytest.mark.parametrize(
    ("records", "passed"),
    [
        # Another message, and another library; not another argument.
        (
            [("aiokafka.conn", "no answer from %s", "a"), ("aiokafka.conn", "no answer from %s", "b"),
             ("aiokafka.conn", "closed"), ("aiokafka.client", "closed")],
            [True, False, True, True],
        ),
        *(([(own, "refused")] * 9, [True] * 9) for own in ("streams", "streams.broker", "models.loading")),
        # Names that only begin or end like ours.
        *(([(name, "refused")] * 3, [True, False, False])
          for name in ("streamsets", "modelscope", "root", "aiokafka.streams")),
    ],
)  # fmt: skip
def test_only_our_own_messages_pass_again(records: list[tuple[str, ...]], passed: list[bool]) -> None:
    repeat_filter = RepeatFilter(Clock())
    assert [repeat_filter.filter(record(*one)) for one in records] == passed


def test_a_message_that_is_not_a_string_passes_once() -> None:
    repeat_filter = RepeatFilter(Clock())
    errors = [logging.LogRecord("kafka", logging.ERROR, "", 1, OSError("x"), (), None) for _ in range(2)]
    assert [repeat_filter.filter(e) for e in errors] == [True, False]


def entry(template: str, *arguments: object, error: BaseException | None = None) -> str:
    made = record("streams.web", template, *arguments)
    made.exc_info = (type(error), error, error.__traceback__) if error else None
    return SafeFormatter("%(levelname)s %(name)s: %(message)s").format(made)


FORGED = "GET /\r\nERROR streams: all is lost\x1b[2J\x9b1m\u2028\u202e\udcff"


def test_a_request_writes_no_line_of_the_log_and_nothing_to_a_terminal() -> None:
    written = entry("%s", FORGED)
    assert written == (
        r"ERROR streams.web: GET /\r\nERROR streams: all is lost\x1b[2J\x9b1m\u2028\u202e\udcff"
    )
    assert entry("größer, 😀") == "ERROR streams.web: größer, 😀"


def test_no_line_of_a_traceback_begins_as_an_entry_does() -> None:
    try:
        raise ValueError(FORGED) from KeyError(FORGED)
    except ValueError as error:
        lines = entry("it failed", error=error).split("\n")
    assert lines[0] == "ERROR streams.web: it failed"
    assert len(lines) > 5 and all(line.startswith("  ") for line in lines[1:])
    assert all(line.isprintable() for line in lines)


def test_an_entry_has_a_limit() -> None:
    try:
        raise ValueError("x" * 1_000_000)
    except ValueError as error:
        written = entry("%s", "y" * 1_000_000, error=error)
    assert len(written) < MAX_MESSAGE + MAX_STACK + 500
    assert "996000 more" in written
