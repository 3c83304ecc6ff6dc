"""The watchdog in processes of its own, because it ends them."""

from __future__ import annotations

import subprocess
import sys
import time
from signal import SIGCONT, SIGSTOP

import pytest

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
def test_an_inference_within_its_deadline_does_not_end_the_process() -> None:
    process = started(
        "for _ in range(4): await asyncio.to_thread(progress.infer, lambda: time.sleep(0.6), progress.batch)"
    )
    _, errors = process.communicate(timeout=END_S)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.slow
def test_a_process_that_was_suspended_goes_on() -> None:
    process = started("await asyncio.to_thread(progress.infer, lambda: time.sleep(0.5), progress.batch)")
    process.send_signal(SIGSTOP)
    time.sleep(5)
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
