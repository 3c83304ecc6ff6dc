"""Models that hang or die: what a test does to a worker's process before it starts."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from models.ner.model import NerModel
from models.types import Stated
from streams.monitoring import watchdog

#: A text with this word hangs.
HANG = "hanging"


def hang() -> None:
    """The tagger waits for ever, and lets other threads run."""
    _before_texts(lambda: time.sleep(3600))


def hang_with_lock() -> None:
    """The tagger computes for ever inside of one call that does not release the interpreter's lock."""
    watchdog.LOCKED_SECONDS = 1.0
    _before_texts(lambda: re.match(r"(a|aa)+$", "a" * 100 + "b"))


def die() -> None:
    """The process of the tagger is killed, as one that needs too much memory is."""
    _before_texts(lambda: os.kill(os.getpid(), signal.SIGKILL))


def _before_texts(work: Callable[[], Any]) -> None:
    predict = NerModel.predict

    def hanging(self: NerModel, batch: Sequence[str], stated: Sequence[Stated] = ()) -> Any:
        if any(HANG in text for text in batch):
            work()
        return predict(self, batch, stated)

    NerModel.predict = hanging  # type: ignore[method-assign]
