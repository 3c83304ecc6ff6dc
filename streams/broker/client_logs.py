"""Logging of a process: credentials in URLs are removed, control characters are escaped, and repeated
messages of libraries are suppressed. Without a broker a client library logs 20 errors a second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from models.redaction import redact

#: Seconds before a library's message is logged again.
PAUSE = 30.0
#: Characters of a message and of a traceback.
MAX_MESSAGE, MAX_STACK = 4_000, 16_000
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


class SafeFormatter(logging.Formatter):
    """An entry is one that this process has written: what others sent, such as the bytes of a request, adds
    no line to the log, does nothing to a terminal and has a limit. A traceback is set in, so that none of its
    lines begins as an entry does. The whole is redacted: it may quote a URL.
    """

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _bounded(_visible(record.message), MAX_MESSAGE)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return self.formatStack(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        return "\n".join(f"  {_visible(line)}" for line in _bounded(stack_info, MAX_STACK).split("\n"))


def _visible(text: str) -> str:
    """The text with escapes for all that is neither printed nor a space."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _bounded(text: str, most: int) -> str:
    """The beginning and the end of a longer text: of a traceback the end says most."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} ... {len(text) - most} more ... {text[-(most // 2) :]}"


def configure_logging() -> None:
    """Configures the root logger of a process of pvstream."""
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        handler.addFilter(RepeatFilter())
    for name in OUR_PACKAGES:
        logging.getLogger(name).setLevel(logging.INFO)
