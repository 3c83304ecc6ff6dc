"""The running inferences of a stage, and the time since its last progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from streams.monitoring.in_flight import InFlight, by_partition, described
from streams.records import Inbound

T = TypeVar("T")


class Inference(NamedTuple):
    """A running inference: when it began, and its records."""

    since: float
    batch: Sequence[Inbound]


class Progress:
    """The event loop and the inference threads write it; any thread may read it."""

    def __init__(
        self, stage: str, clock: Callable[[], float] = time.monotonic, in_flight: InFlight | None = None
    ) -> None:
        self.stage = stage
        self.in_flight = in_flight or InFlight(None)
        self.batch: Sequence[Inbound] = ()
        """The records that the stage has taken last."""
        self._running: dict[int, Inference] = {}
        """The running inferences by their threads."""
        self._has_lag = False
        self._positions: object = None
        self._clock = clock
        self._last = clock()

    def infer(self, work: Callable[[], T], batch: Sequence[Inbound]) -> T:
        """Runs `work` on a batch in the calling thread, and takes its time without waiting for it."""
        started = self._clock()
        if not self._has_lag and not self._running:
            self._last = started
        thread = threading.get_ident()
        self._running[thread] = Inference(started, batch)
        try:
            return self.in_flight.noted(self.stage, batch, partial(_call_as, described(batch), work))
        finally:
            del self._running[thread]
            self._last = self._clock()

    def observe(self, positions: object, *, has_lag: bool) -> None:
        """Receives how far the stage has acknowledged, and whether source records wait."""
        is_new = has_lag and not self._has_lag and not self._running
        if is_new or positions != self._positions:
            self._last = self._clock()
        self._positions, self._has_lag = positions, has_lag

    def inferring_seconds(self) -> float:
        """How long the longest of the running inferences has taken; 0 while none runs."""
        # A copy: other threads change it.
        return max((self._clock() - i.since for i in tuple(self._running.values())), default=0.0)

    def running_beyond(self, seconds: float) -> list[Sequence[Inbound]]:
        """The batches whose inference has taken longer."""
        return [i.batch for i in tuple(self._running.values()) if self._clock() - i.since > seconds]

    def seconds_since_progress(self) -> float:
        """Seconds since an inference ended or a record was acknowledged; 0 while there is nothing to do."""
        if not self._running and not self._has_lag:
            return 0.0
        return max(0.0, self._clock() - self._last)


def skip_commands(batch: Sequence[Inbound], stage: str) -> str:
    """Shell commands that move the records of a batch to the dead letters."""
    return "; ".join(
        f"pvstream skip {topic} {partition} {offsets[0]} --group {stage}"
        if len(offsets) == 1
        else f"for offset in {' '.join(map(str, offsets))}; "
        f"do pvstream skip {topic} {partition} $offset --group {stage}; done"
        for topic, partition, offsets in by_partition(batch)
    )


def _call(work: Callable[[], Any]) -> Any:
    return work()


def _call_as(name: str, work: Callable[[], T]) -> T:
    """Calls `work` below a frame whose file name is `name`. Work that never releases the interpreter's lock
    (a regular expression, for example) leaves faulthandler alone able to write, and it writes file names.
    """
    code = _call.__code__.replace(co_filename=f"<batch: {name}>")
    result: T = FunctionType(code, {})(work)
    return result
