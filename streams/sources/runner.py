"""Runs one source: sends its items to the input topic, reconnects, and stores its position."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from aiokafka.errors import KafkaError
from prometheus_client import Gauge

from streams import metrics
from streams.broker.ranges import Stalled
from streams.input_reports import as_input
from streams.intake.items import AuthorDeletion, Deletion, Intake, Item, Post
from streams.records import MAX_TEXT
from streams.sources.delivery import Delivery, Window
from streams.sources.source import Interrupted, Position, Reason, Source, Step
from streams.topics import MAX_MESSAGE

log = logging.getLogger(__name__)
#: Seconds between two writes of the position; a crash repeats what was sent since the last one.
CHECKPOINT_SECONDS = 1.0
#: Ids whose deletion is remembered, so that a post that arrives after its deletion is not sent.
MAX_REMEMBERED = 100_000
#: Seconds between two searches for the reports of deleted accounts, because each reads the topics. Until then
#: the position is not written, so that a crash repeats the deletions of accounts too.
FORGET_SECONDS = 60.0
MAX_ID = 256
MAX_VALUE = MAX_MESSAGE - 4096

Forget = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Sends tombstones for all reports of authors, given by their keyed hashes; returns their ids."""


class RecentDeletions:
    """The ids that were deleted last, for all sources of a process."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        self._limit = limit
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, id_: str) -> None:
        self._ids[id_] = None
        self._ids.move_to_end(id_)
        if len(self._ids) > self._limit:
            self._ids.popitem(last=False)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where the items of all sources of a process go."""

    delivery: Delivery
    intake: Intake
    topic: str
    """The input topic, without PV_PREFIX."""
    forget_authors: Forget | None = None
    """None: the deletion of an account is counted as unresolved."""
    deletions: RecentDeletions = field(default_factory=RecentDeletions)


class Runner:
    """One source. `connected` says whether its last attempt to connect succeeded."""

    def __init__(self, source: Source, route: Route, position: Position | None) -> None:
        self.source = source
        self.connected = False
        self._route = route
        self._window = Window()
        self._position = self._written = position
        self._authors: list[str] = []
        self._forgotten_at = -math.inf
        self._attempts: Counter[Reason] = Counter()
        self._checkpointing = asyncio.Lock()
        # Kept, because to find a counter by its labels takes longer than to count.
        self._items = metrics.prepare_source(source.name)
        metrics.SOURCE_UP.labels(source.name).set(0)

    @cached_property
    def _lag(self) -> Gauge:
        """Not there before the first item."""
        return metrics.SOURCE_LAG.labels(self.source.name)

    @property
    def position(self) -> Position | None:
        """Where the source would resume now; not all before it need be confirmed."""
        return self._position

    async def run(self) -> None:
        """Reads until the source has an end, raises SourceFailed or is cancelled."""
        while True:
            try:
                async with aclosing(self.source.read(self._position)) as steps:
                    async for step in steps:
                        await self.take(step)
                return
            except Interrupted as interruption:
                await self._pause(interruption)
            finally:
                self._set_connected(False)

    async def checkpoints(self) -> None:
        """Keeps the position regularly, until cancelled."""
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS)
            await self.checkpoint()

    async def checkpoint(self, *, last: bool = False) -> None:
        """Waits until everything before the present position is confirmed, then writes it. Accounts that were
        deleted may put it off, but not the `last` time, and a broker that is away when they are searched for.
        """
        async with self._checkpointing:
            position, authors = self._position, self._authors[:]
            await self._window.confirm()
            if authors and not last and time.monotonic() < self._forgotten_at + FORGET_SECONDS:
                return
            try:
                await self._forget(authors)
            except (KafkaError, Stalled) as error:
                log.warning("%s: accounts are not forgotten yet: %s", self.source.name, type(error).__name__)
                self._forgotten_at = time.monotonic()
                return
            del self._authors[: len(authors)]
            if position is not None and position != self._written:
                await self._route.delivery.write_position(self.source.key, position)
                self._written = position

    async def take(self, step: Step) -> None:
        """Hands the items of a step to the producer, in their order; then its position counts."""
        self._set_connected(True)
        name = self.source.name
        if step.gap > 0:
            metrics.SOURCE_GAPS.labels(name).inc()
            metrics.SOURCE_GAP_SECONDS.labels(name).inc(step.gap)
            log.warning("%s: %.0f s of the stream are missing, and will not come again", name, step.gap)
        self._count("malformed", step.malformed)
        self._count("excluded", step.excluded)
        for outcome, n in step.left_out.items():
            self._count(outcome, n)
        for item in step.items:
            self._count(await self._deliver(item))
        if step.at is not None:
            self._lag.set(max(0.0, time.time() - step.at))
        if step.position is not None:
            self._position = step.position
            self._attempts.clear()
            if self._written is None and not step.items:
                # Where a new source begins: without it, a crash in the first second would begin later.
                await self.checkpoint()

    async def _deliver(self, item: Item) -> str:
        """Sends what belongs to an item; returns the outcome, as in the metric."""
        match item:
            case AuthorDeletion(author):
                self._authors.append(author)
                return "account"
            case Deletion(id_) if _is_id(id_):
                self._route.deletions.add(id_)
                self._route.intake.forget(id_)
                await self._send(id_, None)
                return "deleted"
            case Post():
                return await self._deliver_post(item)
        return "malformed"

    async def _deliver_post(self, post: Post) -> str:
        if not _is_id(post.id):
            return "malformed"
        if not self.source.reuses_ids and post.id in self._route.deletions:
            return "stale"
        value, why_not = self._value(post)
        if value is None:
            return await self._withdraw(post, why_not)
        await self._send(post.id, value)
        return "sent"

    def _value(self, post: Post) -> tuple[bytes | None, str]:
        """The post as a report, or None and the outcome of what is left out."""
        if len(post.text) > MAX_TEXT:
            return None, "malformed"
        report = self._route.intake.take(post) if post.text.strip() else None
        if report is None:
            return None, "filtered"
        try:
            value = as_input(report)
        except TypeError:  # half of a surrogate pair, which is no text
            return None, "malformed"
        return (value, "") if len(value) <= MAX_VALUE else (None, "malformed")

    async def _withdraw(self, post: Post, otherwise: str) -> str:
        """A post that is left out. Where it is an edit, what its author replaced must not stay; a later
        version may pass again. Returns the outcome, which is `otherwise` where nothing was sent before.
        """
        intake = self._route.intake
        if not (post.edited or (self.source.reuses_ids and intake.has_taken(post.id))):
            return otherwise
        intake.forget(post.id)
        await self._send(post.id, None)
        return "deleted"

    async def _send(self, key: str, value: bytes | None) -> None:
        await self._window.add(await self._route.delivery.send(self._route.topic, key, value))

    async def _forget(self, authors: Sequence[str]) -> None:
        """Deletes what is kept of accounts; those without a hash, or a way to find their reports, are
        counted.
        """
        forget = self._route.forget_authors
        found = [self._route.intake.author_hashes(author) for author in authors] if forget else []
        known = [hashes for hashes in found if hashes]
        if forget is not None and known:
            ids = await forget(set().union(*known))
            for id_ in ids:
                self._route.intake.forget(id_)
            self._count("deleted", len(ids))
            self._forgotten_at = time.monotonic()
        self._count("unresolved", len(authors) - len(known))

    async def _pause(self, interruption: Interrupted) -> None:
        self._set_connected(False)
        reason = interruption.reason
        self._attempts[reason] += 1
        wait = self.source.backoff.seconds(interruption, self._attempts[reason])
        metrics.SOURCE_RECONNECTS.labels(self.source.name, reason).inc()
        level = logging.WARNING if reason == "hostile" else logging.INFO
        log.log(level, "%s: %s; connecting again in %.1f s", self.source.name, interruption, wait)
        await asyncio.sleep(wait)

    def _count(self, outcome: str, n: int = 1) -> None:
        if n:
            self._items[outcome].inc(n)

    def _set_connected(self, connected: bool) -> None:
        if connected == self.connected:
            return
        self.connected = connected
        metrics.SOURCE_UP.labels(self.source.name).set(connected)


def _is_id(id_: Any) -> bool:
    """Whether a report can have this id (see `streams.records`)."""
    return isinstance(id_, str) and 0 < len(id_) <= MAX_ID and id_.isprintable() and bool(id_.strip())
