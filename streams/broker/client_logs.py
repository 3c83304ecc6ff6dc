"""Logging of a process: credentials in URLs are removed, and repeated messages of libraries are suppressed.
Without a broker a client library logs 20 errors a second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from models.redaction import redact

#: Seconds before a library's message is logged again.
PAUSE = 30.0
OUR_PACKAGES = ("streams", "models")


class RepeatFilter(logging.Filter):
    """Passes a library's message once every PAUSE seconds, and all messages of this project."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._last_passed: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.split(".")[0] in OUR_PACKAGES:
            return True
        # The template, not the formatted message: another number or address does not make a new message.
        key = (record.name, str(record.msg)[:80])
        now = self._clock()
        if now - self._last_passed.get(key, -PAUSE) < PAUSE:
            return False
        self._last_passed[key] = now
        return True


class RedactingFormatter(logging.Formatter):
    """Redacts the whole entry: a traceback may quote a URL as well as a message."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def configure_logging() -> None:
    """Configures the root logger of a process of pvstream."""
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        handler.addFilter(RepeatFilter())
    for name in OUR_PACKAGES:
        logging.getLogger(name).setLevel(logging.INFO)
