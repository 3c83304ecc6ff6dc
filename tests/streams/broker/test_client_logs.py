"""The filter for log messages: a library's message passes once in a while, our own always."""

from __future__ import annotations

import logging

import pytest

from streams.broker.client_logs import MAX_MESSAGE, MAX_STACK, PAUSE, RepeatFilter, SafeFormatter


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def record(logger: str, template: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord(logger, logging.ERROR, __file__, 1, template, arguments, None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def repeat_filter(clock: Clock) -> RepeatFilter:
    return RepeatFilter(clock)


def test_a_librarys_message_passes_once_until_the_pause_is_over(
    repeat_filter: RepeatFilter, clock: Clock
) -> None:
    passed = []
    for _ in range(100):
        passed.append(repeat_filter.filter(record("aiokafka.conn", "connection failed")))
        clock.now += PAUSE / 40
    assert [i for i, one in enumerate(passed) if one] == [0, 40, 80]


def test_messages_that_differ_only_in_their_arguments_are_the_same(repeat_filter: RepeatFilter) -> None:
    assert repeat_filter.filter(record("aiokafka.conn", "no answer from %s", "10.0.0.1"))
    assert not repeat_filter.filter(record("aiokafka.conn", "no answer from %s", "10.0.0.2"))


def test_another_message_and_another_library_pass(repeat_filter: RepeatFilter) -> None:
    assert repeat_filter.filter(record("aiokafka.conn", "connection failed"))
    assert repeat_filter.filter(record("aiokafka.conn", "connection closed"))
    assert repeat_filter.filter(record("aiokafka.client", "connection failed"))


@pytest.mark.parametrize("logger", ["streams", "streams.broker.watch", "models.loading"])
def test_our_own_messages_always_pass(logger: str, repeat_filter: RepeatFilter) -> None:
    assert all(repeat_filter.filter(record(logger, "refused")) for _ in range(10))


@pytest.mark.parametrize("logger", ["streamsets", "modelscope", "root", "aiokafka.streams"])
def test_a_logger_whose_name_only_begins_or_ends_like_ours_is_a_librarys(
    logger: str, repeat_filter: RepeatFilter
) -> None:
    assert [repeat_filter.filter(record(logger, "refused")) for _ in range(3)] == [True, False, False]


def test_a_message_that_is_not_a_string_passes_once(repeat_filter: RepeatFilter) -> None:
    errors = [logging.LogRecord("kafka", logging.ERROR, "", 1, OSError("x"), (), None) for _ in range(2)]
    assert [repeat_filter.filter(e) for e in errors] == [True, False]


def test_on_a_handler_it_reduces_the_messages_that_are_written(clock: Clock) -> None:
    written: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(record.getMessage())

    logger = logging.Logger("faust.transport")
    handler = Handler()
    handler.addFilter(RepeatFilter(clock))
    logger.addHandler(handler)
    for attempt in range(20):
        logger.error("attempt %d failed", attempt)
    clock.now += PAUSE
    logger.error("attempt %d failed", 20)
    assert written == ["attempt 0 failed", "attempt 20 failed"]


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
