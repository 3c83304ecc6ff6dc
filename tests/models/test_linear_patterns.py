"""No text keeps a stage: every pattern needs linear time for what is read of it."""

from __future__ import annotations

import importlib
import pkgutil
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from math import inf
from time import process_time
from typing import Any

import pytest

import models
import streams
from models.normalization import measurements
from models.reading_form.form import reading_form
from tests.models.hostile_texts import hostile_to

#: Characters of the texts. The middle is tried only where the short one takes more than a moment, the long
#: one only where the middle takes more than linear time.
SHORT, MIDDLE, LONG = 1_250, 2_500, 20_000
#: Processor seconds: what a search of the short text needs at least to be looked at, and of the long one.
MOMENT, SECONDS = 0.0005, 0.2
#: How many times as long as for the short text: linear time gives 2 and 16, quadratic 4 and 256.
MIDDLE_GROWTH, LONG_GROWTH = 2.5, 48


def patterns_in(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    """The compiled patterns in the value of a module's name, and in what that holds."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 5:
        inner: Any = ()
        if isinstance(value, dict):
            inner = value.values()
        elif isinstance(value, (tuple, list)):
            inner = value
        elif is_dataclass(value) and not isinstance(value, type):
            inner = [getattr(value, field.name, None) for field in fields(value)]
        for one in inner:
            yield from patterns_in(one, depth + 1)


def all_patterns() -> dict[str, list[re.Pattern[str]]]:
    """The patterns of text in all modules of `models` and `streams`, each by the first module that has it."""
    for package in (models, streams):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found = dict.fromkeys(measurements._readings().says.values(), measurements.__name__)
    for name, module_ in sorted(sys.modules.items()):
        if name.startswith(("models.", "streams.")):
            for value in vars(module_).values():
                for pattern in patterns_in(value):
                    if isinstance(pattern.pattern, str):
                        found.setdefault(pattern, name)
    by_module: dict[str, list[re.Pattern[str]]] = {}
    for pattern, name in found.items():
        by_module.setdefault(name, []).append(pattern)
    return by_module


PATTERNS = all_patterns()


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """TimeoutError when the processor time is over; a signal reaches a search between two of its steps."""

    def end(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def slow_text(pattern: re.Pattern[str], made: Callable[[str], str]) -> str | None:
    """The beginning of a text for which the pattern needs more than linear time."""
    for short, middle, long in zip(*(hostile_to(pattern, n) for n in (SHORT, MIDDLE, LONG)), strict=True):
        seconds = search_seconds(pattern, made(short))
        if seconds < MOMENT or search_seconds(pattern, made(middle)) < MIDDLE_GROWTH * seconds:
            continue
        if search_seconds(pattern, made(long)) > max(SECONDS, LONG_GROWTH * seconds):
            return str(short[:60])
    return None


def search_seconds(pattern: re.Pattern[str], text: str) -> float:
    """Processor seconds of all searches of a pattern in a text; without end after six times SECONDS."""
    start = process_time()
    try:
        with ended_after(6 * SECONDS):
            for _ in pattern.finditer(text):
                pass
    except TimeoutError:
        return inf
    return process_time() - start


def readable(text: str) -> str:
    """The text as stages give it to models, which get none that is blank."""
    return reading_form(text if text.strip() else f"x{text}").text


def test_there_are_patterns_and_one_that_needs_quadratic_time_is_found() -> None:
    assert sum(map(len, PATTERNS.values())) > 150
    pattern = re.compile(r"(?:\w+\s+)*$")
    # A hiccup while the short text is read hides the growth: one look of three is enough.
    assert any(slow_text(pattern, readable) is not None for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("module", PATTERNS)
def test_a_pattern_needs_linear_time(module: str) -> None:
    is_stage = module.startswith("models.") and not module.startswith("models.reading_form.")
    made = readable if is_stage else str
    slow = {pattern.pattern: text for pattern in PATTERNS[module] if (text := slow_text(pattern, made))}
    assert slow == {}
