"""Ends the process when inference does not return, or when the event loop does not run.

A thread cannot be stopped from outside, so only a new process can continue. Nothing is acknowledged before
the end, so the broker delivers the records of the batch again.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import threading
import time
from collections.abc import Sequence

from streams.monitoring.in_flight import described
from streams.monitoring.progress import Progress, skip_commands
from streams.records import Inbound

log = logging.getLogger(__name__)
#: Seconds between two checks, at most.
CHECK_SECONDS = 1.0
#: Seconds between the failure of /health/live and the end of the process, for a probe to see it.
EXIT_SECONDS = 3.0
#: Seconds beyond the deadline after which the process ends although this thread cannot run, because something
#: holds the interpreter's lock. A process that is suspended for less does not end.
LOCKED_SECONDS = 60.0


class Watchdog:
    """`deadline` is the longest time in seconds of one inference, and of a pause of the event loop."""

    def __init__(self, deadline: float) -> None:
        self.progress: Sequence[Progress] = ()
        """Of each stage of the process."""
        self._deadline = deadline
        self._interval = min(CHECK_SECONDS, deadline / 4)
        self._suspended = 0.0
        self._beat = self.clock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def clock(self) -> float:
        """Monotonic seconds, without those in which the process was suspended, as far as the thread runs."""
        return time.monotonic() - self._suspended

    def stalled(self) -> list[str]:
        """The stages whose inference is beyond the deadline."""
        return [p.stage for p in self.progress if p.inferring_seconds() > self._deadline]

    async def beat(self) -> None:
        """Shows until cancelled that the event loop runs."""
        while True:
            self._beat = self.clock()
            await asyncio.sleep(self._interval)

    def start(self) -> None:
        """Starts the thread that ends the process."""
        self._beat = self.clock()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(EXIT_SECONDS)
            faulthandler.cancel_dump_traceback_later()

    def _run(self) -> None:
        last = time.monotonic()
        faulthandler.dump_traceback_later(self._deadline + LOCKED_SECONDS, exit=True)
        while not self._stopped.wait(self._interval):
            faulthandler.dump_traceback_later(self._deadline + LOCKED_SECONDS, exit=True)
            now = time.monotonic()
            # A process that was suspended has not had this time.
            self._suspended += max(0.0, now - last - 2 * self._interval)
            last = now
            problems = self._problems()
            if problems:
                self._end(problems)

    def _problems(self) -> list[str]:
        """A line for the log about everything that is beyond the deadline."""
        deadline = self._deadline
        lines = [_hung(p.stage, b, deadline) for p in self.progress for b in p.running_beyond(deadline)]
        if self.clock() - self._beat > self._deadline:
            work = "; ".join(f"{p.stage}: {described(p.batch)}" for p in self.progress if p.batch)
            lines.append(f"the event loop has not run for {self._deadline:g} s; the last batches: {work}")
        return lines

    def _end(self, problems: Sequence[str]) -> None:
        for line in problems:
            log.error("%s", line)
        time.sleep(EXIT_SECONDS)
        faulthandler.dump_traceback()
        logging.shutdown()
        os._exit(1)


def _hung(stage: str, batch: Sequence[Inbound], deadline: float) -> str:
    """For the log; where PV_STATE cannot be written, nobody but the operator ends the repetition."""
    text = (
        f"{stage}: inference has not returned within {deadline:g} s: this process ends, and the "
        f"records {described(batch)} are delivered again, each alone. The one that "
        "is alone in two further ends becomes a dead letter. To move it at once, "
    )
    if len(batch) > 1:
        text += "run one worker with PV_BATCH=1 to find it, then "
    return f"{text}stop the workers of the stage and run: {skip_commands(batch, stage)}"
