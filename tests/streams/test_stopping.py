"""What SIGTERM does to work in the main thread, and how often a process looks for cycles."""

from __future__ import annotations

import subprocess
import sys

#: The imports that a failed command makes are made before, so that the process would end with its error
#: sooner than by the timer.
INTERRUPTED = """
import os, signal, time
import streams.__main__ as program
from streams.stopping import end_at_sigterm
program._reported_errors()
def app():
    end_at_sigterm()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    except SystemExit:
        raise RuntimeError("Query interrupted")
program.app = app
program.main()
"""


def test_an_error_that_a_database_makes_of_the_interruption_is_none() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


#: What a command sees of the collector, and what a worker has after its start.
COLLECTING = """
import gc
usual = gc.get_threshold()
import streams.__main__ as program
from streams.stopping import freeze
def app():
    rare = gc.get_threshold()
    freeze()
    print(rare[0] > 100 * usual[0], gc.get_threshold() == usual)
program.app = app
program.main()
"""


def test_cycles_are_looked_for_rarely_until_a_worker_has_started() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTING], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "True True\n", done.stderr
