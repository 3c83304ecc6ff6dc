"""The progress of stages, and the watchdog in processes of its own, because it ends them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from signal import SIGCONT, SIGSTOP

import pytest

from streams.monitoring.in_flight import described
from streams.monitoring.progress import Progress, skip_commands
from streams.records import Inbound
from tests.fakes import Clock


def record(partition: int, offset: int) -> Inbound:
    return Inbound("posts", partition, offset, b"patient", b"value", 0.0)


def test_time_passes_only_from_the_start_of_an_inference_until_it_returns_or_raises() -> None:
    clock = Clock()
    progress = Progress("ner", clock)
    clock.now += 1000
    assert progress.seconds_since_progress() == 0
    assert progress.inferring_seconds() == 0
    clock = Clock()
    progress = Progress("ner", clock)
    clock.now += 1000

    def work() -> str:
        clock.now += 7
        assert progress.seconds_since_progress() == progress.inferring_seconds() == 7
        return "done"

    assert progress.infer(work, [record(0, 1)]) == "done"
    assert progress.seconds_since_progress() == progress.inferring_seconds() == 0
    progress = Progress("ner")
    with pytest.raises(ZeroDivisionError):
        progress.infer(lambda: 1 / 0, [record(0, 1)])
    assert progress.inferring_seconds() == 0
    assert progress.running_beyond(-1) == []


def test_of_several_inferences_the_longest_counts_and_only_those_beyond_a_time_are_named() -> None:
    clock = Clock()
    progress = Progress("ner", clock)
    first_runs, may_end = threading.Event(), threading.Event()

    def first() -> None:
        first_runs.set()
        assert may_end.wait(5)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(progress.infer, first, [record(0, 1)])
        assert first_runs.wait(5)
        clock.now += 50

        def second() -> None:
            clock.now += 10
            assert progress.inferring_seconds() == 60
            assert progress.running_beyond(30) == [[record(0, 1)]]
            assert progress.running_beyond(5) == [[record(0, 1)], [record(0, 2)]]

        progress.infer(second, [record(0, 2)])
        assert progress.inferring_seconds() == 60
        may_end.set()
        running.result(5)
    assert progress.inferring_seconds() == 0


def test_records_that_wait_count_from_their_arrival_until_something_is_acknowledged() -> None:
    clock = Clock()
    progress = Progress("ner", clock)
    progress.observe({0: 5}, has_lag=False)
    clock.now += 1000
    progress.observe({0: 5}, has_lag=True)
    clock.now += 30
    progress.observe({0: 5}, has_lag=True)
    assert progress.seconds_since_progress() == 30
    progress.observe({0: 6}, has_lag=True)
    assert progress.seconds_since_progress() == 0
    clock.now += 10
    progress.observe({0: 6}, has_lag=False)
    assert progress.seconds_since_progress() == 0


def test_a_batch_is_described_by_its_offsets_and_never_by_its_keys() -> None:
    batch = [record(2, 5), record(0, 17), record(0, 18), record(0, 20)]
    assert described(batch) == "posts/0 17-18, 20, posts/2 5"
    assert skip_commands(batch, "ner") == (
        "for offset in 17 18 20; do pvstream skip posts 0 $offset --group ner; done; "
        "pvstream skip posts 2 5 --group ner"
    )
    assert described([]) == skip_commands([], "ner") == ""


START = """
import asyncio, sys, threading, time
from streams.monitoring.progress import Progress
from streams.monitoring.watchdog import Watchdog
from streams.records import Inbound

watchdog = Watchdog(2.0)
progress = Progress("ner", watchdog.clock)
progress.batch = [Inbound("posts", 3, 17, b"patient", b"value", 0.0)]
watchdog.progress = [progress]

async def main():
    beat = asyncio.create_task(watchdog.beat())
    watchdog.start()
    print("started", flush=True)
    {body}
    watchdog.stop()

asyncio.run(main())
"""
END_S = 30.0


def started(body: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", START.replace("{body}", body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


@pytest.mark.slow
def test_an_event_loop_that_is_blocked_ends_the_process() -> None:
    process = started("time.sleep(60)")
    _, errors = process.communicate(timeout=END_S)
    assert process.returncode == 1
    assert "the event loop has not run for 2 s; the last batches: ner: posts/3 17\n" in errors


@pytest.mark.slow
def test_a_process_that_was_suspended_goes_on_with_inferences_within_their_deadline() -> None:
    process = started(
        "for _ in range(4): await asyncio.to_thread(progress.infer, lambda: time.sleep(0.6), progress.batch)"
    )
    process.send_signal(SIGSTOP)
    time.sleep(4)
    process.send_signal(SIGCONT)
    _, errors = process.communicate(timeout=END_S)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.slow
def test_of_two_inferences_the_one_that_hangs_is_named() -> None:
    process = started(
        """
    other = [Inbound("posts", 3, 18, b"patient", b"value", 0.0)]
    asyncio.get_running_loop().run_in_executor(None, progress.infer, lambda: time.sleep(60), other)
    for _ in range(100): await asyncio.to_thread(progress.infer, lambda: time.sleep(0.3), progress.batch)
    """
    )
    _, errors = process.communicate(timeout=END_S)
    assert process.returncode == 1
    assert "ner: inference has not returned within 2 s" in errors
    assert "the records posts/3 18 are delivered again" in errors
    assert "posts/3 17 are" not in errors
