"""Log messages: a library says a thing once in a while, we say what we have to say."""

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
def sparse(clock: Clock) -> RepeatFilter:
    return RepeatFilter(clock)


def test_a_library_says_a_thing_once_until_the_pause_is_over(sparse: RepeatFilter, clock: Clock) -> None:
    said = []
    for _ in range(100):
        said.append(sparse.filter(record("aiokafka.conn", "connection failed")))
        clock.now += PAUSE / 40
    assert [i for i, passed in enumerate(said) if passed] == [0, 40, 80]


def test_what_differs_in_its_arguments_only_is_the_same_thing(sparse: RepeatFilter) -> None:
    assert sparse.filter(record("aiokafka.conn", "no answer from %s", "10.0.0.1"))
    assert not sparse.filter(record("aiokafka.conn", "no answer from %s", "10.0.0.2"))


def test_another_thing_and_another_library_are_heard(sparse: RepeatFilter) -> None:
    assert sparse.filter(record("aiokafka.conn", "connection failed"))
    assert sparse.filter(record("aiokafka.conn", "connection closed"))
    assert sparse.filter(record("aiokafka.client", "connection failed"))


@pytest.mark.parametrize("logger", ["streams", "streams.broker.watch", "models.releases.loading"])
def test_our_own_messages_always_pass(logger: str, sparse: RepeatFilter) -> None:
    assert all(sparse.filter(record(logger, "refused")) for _ in range(10))


@pytest.mark.parametrize("logger", ["streamsets", "modelscope", "root", "aiokafka.streams"])
def test_a_name_that_only_begins_or_ends_like_ours_is_a_librarys(logger: str, sparse: RepeatFilter) -> None:
    assert [sparse.filter(record(logger, "refused")) for _ in range(3)] == [True, False, False]


def test_a_message_that_is_no_text_is_let_pass_once(sparse: RepeatFilter) -> None:
    errors = [logging.LogRecord("kafka", logging.ERROR, "", 1, OSError("x"), (), None) for _ in range(2)]
    assert [sparse.filter(e) for e in errors] == [True, False]


def test_on_a_handler_it_thins_out_what_is_written(clock: Clock) -> None:
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
