"""For what share of the time is Python's global lock held? A thread asks for it at moments of its choice.

It sleeps on a timer that counts microseconds: the count that it reads when it wakes says when the system woke
it, before it asked for the lock. What passes from then until it runs is the wait for the lock alone, however
busy the machine is. The lock was held where that is over twice the usual wait while nothing else runs. A loop
in Python gives about 1, a product of torch about 0. Needs Linux.
"""

from __future__ import annotations

import ctypes
import os
import random
import statistics
import struct
import threading
import time
from typing import Self

#: Seconds between two questions: each may cost the other threads one exchange of the lock.
GAPS = (0.005, 0.02)
#: Nanoseconds of a step of the timer, and questions from which the usual wait is known.
STEP, USUAL = 1000, 25
_ABSOLUTE = 1
_LIBRARY = ctypes.CDLL(None, use_errno=True)


class LockProbe:
    """Measures during a block; `share` is that of the questions for which the lock was held, 0 to 1."""

    def __enter__(self) -> Self:
        self._timer = _LIBRARY.timerfd_create(time.CLOCK_MONOTONIC, 0)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "no timer")
        self._gaps = random.Random(7)
        self._limit = 2 * statistics.median(self._wait() for _ in range(USUAL))
        self._waits: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        os.close(self._timer)

    @property
    def questions(self) -> int:
        return len(self._waits)

    @property
    def share(self) -> float:
        return sum(wait > self._limit for wait in self._waits) / max(1, len(self._waits))

    def _ask(self) -> None:
        while not self._ended.is_set():
            self._waits.append(self._wait())

    def _wait(self) -> float:
        """Nanoseconds between waking and having the lock."""
        due = time.monotonic_ns() + int(1e9 * self._gaps.uniform(*GAPS))
        when = struct.pack("4l", 0, STEP, *divmod(due, 10**9))
        if _LIBRARY.timerfd_settime(self._timer, _ABSOLUTE, when, None):
            raise OSError(ctypes.get_errno(), "no timer")
        steps: int = struct.unpack("Q", os.read(self._timer, 8))[0]
        return time.monotonic_ns() - due - (steps - 1) * STEP
