"""The filter for log messages: a library's message passes once in a while, our own always."""

from __future__ import annotations

import logging

import pytest

from streams.broker.client_logs import PAUSE, RepeatFilter


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


@pytest.mark.parametrize("logger", ["streams", "streams.broker.watch", "models.releases.loading"])
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
