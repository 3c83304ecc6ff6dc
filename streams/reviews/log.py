"""The topic `reviews`: read whole at the start, then written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from streams.codec import BadRecord, decode_any
from streams.records import SECOND, Assignment, Decision, Review, ReviewedEvent, SignalDecision
from streams.reviews.agreement import Readings
from streams.reviews.chain import BrokenChain, has_place, linked, verify
from streams.reviews.chain_head import KeptHead
from streams.reviews.tail import Tail
from streams.settings import Settings
from streams.topics import REVIEWS

log = logging.getLogger(__name__)
D = TypeVar("D", bound=Decision)
#: Report, start and end of the event, fingerprint of the text.
Place = tuple[str, int, int, str]


def place_of(review: Review) -> Place:
    return review.report_id, review.start, review.end, review.fingerprint


class ReviewLog:
    """The decisions so far, and the present state of each event that has one. Any number of processes may
    write: of two decisions at the same moment the topic's order makes one the next, and the other is written
    again behind it.
    """

    def __init__(self, settings: Settings) -> None:
        self._tail = Tail(settings, REVIEWS)
        self._lock = asyncio.Lock()
        self._head = KeptHead(settings)
        self._broken: BrokenChain | None = None
        self.passed = 0
        """Records that are no decisions. They change nothing, so that nobody can end reviewing by one."""
        self.decisions: list[Decision] = []
        """The whole chain: those on events, which are `reviews` too, on signals, and assignments."""
        self.reviews: list[Review] = []
        self.signals: list[SignalDecision] = []
        self.assigned: dict[str, Assignment] = {}
        """The last of each report."""
        self.current: dict[Place, ReviewedEvent] = {}
        self.readings: dict[Place, Readings] = {}

    async def start(self) -> None:
        """Reads the topic. Raises TopicsError, and BrokenChain where it is not whole or was cut off."""
        kept = self._head.read()
        await self._tail.start()
        await self._catch_up()
        self._head.check(self.decisions, kept)

    async def stop(self) -> None:
        await self._tail.stop()

    async def refresh(self) -> None:
        """Reads what other processes have decided. Raises BrokenChain."""
        async with self._lock:
            await self._catch_up()

    async def append(self, decision: D, is_due: Callable[[], bool] = lambda: True) -> D | None:
        """Writes a decision as the next of the chain and waits until it is. None where it is not due any more
        after what others have decided, such as the same form that was sent twice.
        """
        async with self._lock:
            await self._catch_up()
            while True:
                if not is_due():
                    return None
                placed = linked(decision, self._last)
                key = decision.drug if isinstance(decision, SignalDecision) else decision.report_id
                await self._catch_up(await self._tail.send(key, placed))
                if self.decisions[placed.sequence] == placed:
                    break
            await asyncio.to_thread(self._keep_head)
        return placed

    @property
    def _last(self) -> Decision | None:
        return self.decisions[-1] if self.decisions else None

    def _keep_head(self) -> None:
        """A failure is logged: the broker has the decision."""
        try:
            self._head.write(self.decisions)
        except OSError as error:
            log.warning("the head of the decisions is not kept: %s", error)

    async def _catch_up(self, past: int = -1) -> None:
        """Reads what was written since the last time, at least past an offset. A chain that is not whole
        stays so.
        """
        if self._broken is not None:
            raise self._broken
        try:
            self._take_all(await self._tail.read(past))
        except BrokenChain as error:
            self._broken = error
            raise

    def _take_all(self, messages: Sequence[Any]) -> None:
        """Raises BrokenChain, also where a record cannot be read that has the next place of the chain."""
        found, passed, last = [], 0, ""
        for message in messages:
            try:
                found.append(decode_any(REVIEWS.kinds, message.value))
                continue
            except BadRecord as error:
                passed, last = passed + 1, f"reviews/0@{message.offset}: {error}"
            self._take_next(found)
            found = []
            if has_place(message.value, self._last):
                raise BrokenChain(f"decision {len(self.decisions)} cannot be read, {last}")
        self._take_next(found)
        self.passed += passed
        if passed:
            log.warning("records that are no decisions, passed: %d, the last one %s", passed, last)

    def _take_next(self, found: Sequence[Decision]) -> None:
        for decision in verify(found, self.decisions):
            self.decisions.append(decision)
            if isinstance(decision, Review):
                self._take(decision)
            elif isinstance(decision, SignalDecision):
                self.signals.append(decision)
            else:
                self.assigned[decision.report_id] = decision

    def _take(self, review: Review) -> None:
        self.reviews.append(review)
        place = place_of(review)
        self.readings.setdefault(place, Readings(review.before)).take(review)
        if review.reading != SECOND:
            self.current[place] = review.after
