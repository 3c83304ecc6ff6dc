"""The share of the time in which the global lock is held, of loads whose share is known."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch

from benchmarks.speed.lock import LockProbe

SQUARE = torch.rand(1000, 1000)


def loop() -> None:
    sum(i * i for i in range(1000))


def product() -> None:
    torch.mm(SQUARE, SQUARE)


def share_of(work: Callable[[], object], questions: int = 60) -> float:
    """The share of the time in which a thread that does only this holds the lock."""
    ended = threading.Event()

    def run() -> None:
        torch.set_num_threads(1)
        while not ended.is_set():
            work()

    thread = threading.Thread(target=run)
    with LockProbe() as probe:
        thread.start()
        while probe.questions < questions and thread.is_alive():
            ended.wait(0.01)
        ended.set()
        thread.join()
    return probe.share


@pytest.mark.slow
def test_a_loop_in_python_holds_the_lock_and_a_product_of_torch_does_not() -> None:
    assert share_of(product) < 0.3
    assert share_of(loop) > 0.7
