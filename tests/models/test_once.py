from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from models.once import once


def test_threads_that_ask_at_once_share_one_result() -> None:
    calls: list[str] = []
    barrier = threading.Barrier(4)

    @once
    def made(name: str) -> object:
        calls.append(name)
        time.sleep(0.05)
        return object()

    def ask() -> object:
        barrier.wait(10)
        return made("a")

    with ThreadPoolExecutor(4) as pool:
        results = {id(f.result(10)) for f in [pool.submit(ask) for _ in range(4)]}
    assert (len(results), calls) == (1, ["a"])
    assert made("b") is not made("a")


def test_an_error_is_raised_and_not_kept() -> None:
    answers = iter([0, 1])

    @once
    def divided() -> float:
        return 1 / next(answers)

    with pytest.raises(ZeroDivisionError):
        divided()
    assert divided() == divided() == 1
