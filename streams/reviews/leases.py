"""Leases of events: which session reviews which event, over all processes that serve the page.

A process requests a lease by a record on the topic `leases`. The order of that topic decides: the first
request for a free event is granted, and every process that reads the topic comes to the same result. Times
are those of the broker.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

from aiokafka.errors import KafkaError

from streams.codec import BadRecord, decode
from streams.records import Lease
from streams.reviews.log import Place
from streams.reviews.tail import STOP_SECONDS, Tail
from streams.settings import Settings
from streams.topics import LEASES, TopicsError

#: Seconds that a lease lasts.
LEASE_SECONDS = 600.0
#: Events for which a lease is requested until one is granted: other sessions may request the same ones.
TRIES = 20
#: Sessions, and events of each, of which it is remembered that they were skipped.
MAX_SESSIONS = MAX_SKIPPED = 1_000


class LeaseTable:
    """The leases in force, from the requests in the order of the topic."""

    def __init__(self) -> None:
        self._held: dict[Place, tuple[str, float]] = {}

    def take(self, lease: Lease, at: float) -> bool:
        """Applies a request made at a time; whether it is granted. One of 0 seconds ends the lease."""
        place = lease.report_id, lease.start, lease.end, lease.fingerprint
        if self.holder(place, at) not in {lease.holder, None}:
            return False
        if lease.seconds:
            self._held[place] = lease.holder, at + lease.seconds
        else:
            self._held.pop(place, None)
        return True

    def holder(self, place: Place, at: float) -> str | None:
        """The session that has a lease of the event at a time, or None."""
        holder, until = self._held.get(place, ("", 0.0))
        return holder if until > at else None

    def forget(self, at: float) -> None:
        """Drops the leases that have expired."""
        self._held = {place: held for place, held in self._held.items() if held[1] > at}


class Leases:
    """The leases of the sessions of one process; names of sessions are unique over all processes."""

    def __init__(self, settings: Settings) -> None:
        self._tail = Tail(settings, LEASES)
        self._lock = asyncio.Lock()
        self._held = LeaseTable()
        self._skipped: OrderedDict[str, dict[Place, None]] = OrderedDict()
        self._own: dict[Place, str] = {}

    async def start(self) -> None:
        """Reads the leases of other processes. Raises TopicsError."""
        await self._tail.start()
        await self._read()

    async def stop(self) -> None:
        """Ends the leases of this process's sessions; without a broker they end with their time."""
        with suppress(KafkaError, TopicsError, TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                for place, session in list(self._own.items()):
                    await self.release(place, session)
        await self._tail.stop()

    async def take(self, places: Sequence[Place], session: str) -> Place | None:
        """The event that the session has already, if it is among the places, else the first free one."""
        async with self._lock:
            await self._read()
            for _ in range(TRIES):
                chosen = self._chosen(places, session)
                if chosen is None or await self._granted(chosen, session, LEASE_SECONDS):
                    return chosen
        return None

    async def holds(self, place: Place, session: str) -> bool:
        """Whether the session has the event; where it has, for the whole time from now."""
        async with self._lock:
            await self._read()
            if self._held.holder(place, time.time()) != session:
                return False
            return await self._granted(place, session, LEASE_SECONDS)

    async def skip(self, place: Place, session: str) -> None:
        """Gives an event back; the session does not get it again while the process runs and remembers it."""
        skipped = self._skipped[session] = self._skipped.pop(session, {})
        skipped[place] = None
        if len(skipped) > MAX_SKIPPED:
            del skipped[next(iter(skipped))]
        if len(self._skipped) > MAX_SESSIONS:
            self._skipped.popitem(last=False)
        await self.release(place, session)

    async def release(self, place: Place, session: str) -> None:
        """Gives an event back, if the session has it."""
        async with self._lock:
            if self._own.get(place) == session:
                await self._granted(place, session, 0.0)

    def _chosen(self, places: Sequence[Place], session: str) -> Place | None:
        now = time.time()
        self._held.forget(now)
        self._own = {place: by for place, by in self._own.items() if self._held.holder(place, now) == by}
        skipped = self._skipped.get(session, {})
        listed = [place for place in places if place not in skipped]
        holders = {place: self._held.holder(place, now) for place in listed}
        own = (place for place in listed if holders[place] == session)
        free = (place for place in listed if holders[place] is None)
        return next(own, None) or next(free, None)

    async def _granted(self, place: Place, session: str, seconds: float) -> bool:
        """Asks for a lease, and reads whether the order of the topic gives it."""
        report_id, start, end, fingerprint = place
        lease = Lease(
            report_id=report_id, start=start, end=end, fingerprint=fingerprint, holder=session,
            seconds=seconds,
        )  # fmt: skip
        offset = await self._tail.send(report_id, lease)
        granted = (await self._read(offset))[offset]
        if granted and seconds:
            self._own[place] = session
        else:
            self._own.pop(place, None)
        return granted

    async def _read(self, past: int = -1) -> dict[int, bool]:
        """What was written since the last time, at least past an offset: offset to whether it was granted."""
        found = {}
        for message in await self._tail.read(past):
            with suppress(BadRecord):
                lease = decode(Lease, message.value)
                found[message.offset] = self._held.take(lease, message.timestamp / 1000)
        return found
