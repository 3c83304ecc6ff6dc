"""Keeps a client library that says the same thing many times a second from drowning everything else."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

#: Seconds in which a library says a thing once.
PAUSE = 30.0
OURS = ("streams", "models")


class Sparse(logging.Filter):
    """Lets a library's message pass once in a while; a broker that is away makes twenty errors a second.

    Our own messages always pass.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.split(".")[0] in OURS:
            return True
        # The template, not the message: numbers and addresses in it are no news.
        key = (record.name, str(record.msg)[:80])
        now = self._clock()
        if now - self._said.get(key, -PAUSE) < PAUSE:
            return False
        self._said[key] = now
        return True
