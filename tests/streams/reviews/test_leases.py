"""Leases and decisions of several processes that share nothing but the broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streams.broker.embedded import EmbeddedBroker
from streams.codec import encode
from streams.records import Inbound, Lease, Review
from streams.reviews import leases as module
from streams.reviews.chain import BrokenChain, is_late, linked, verify
from streams.reviews.leases import LEASE_SECONDS, Leases, LeaseTable
from streams.reviews.log import Place, ReviewLog
from streams.reviews.tail import Tail
from streams.settings import Settings
from streams.store.follow import Follower
from streams.store.open_database import open_database
from streams.topics import LEASES, TopicsError, create
from tests.streams.store.messages import FOUND

PLACES: list[Place] = [(f"r{i}", 0, 4, "f") for i in range(30)]


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with EmbeddedBroker() as broker:
        yield Settings(broker=f"kafka://{broker.bootstrap}", state=tmp_path)


@asynccontextmanager
async def processes(settings: Settings) -> AsyncIterator[tuple[Leases, Leases]]:
    one, two = Leases(settings), Leases(settings)
    await one.start()
    await two.start()
    try:
        yield one, two
    finally:
        await one.stop()
        await two.stop()


def asked(holder: str, seconds: float = LEASE_SECONDS, place: Place = PLACES[0]) -> Lease:
    report_id, start, end, fingerprint = place
    return Lease(
        report_id=report_id, start=start, end=end, fingerprint=fingerprint, holder=holder, seconds=seconds
    )


def test_an_event_belongs_to_the_first_who_asked_until_it_ends_or_is_given_back() -> None:
    held = LeaseTable()
    assert [held.take(asked("one"), 0), held.take(asked("two"), 0), held.take(asked("one"), 5)] == [1, 0, 1]
    assert not held.take(asked("two", 0), 6)  # nobody gives back what another one has
    assert held.holder(PLACES[0], LEASE_SECONDS + 4) == "one"
    assert held.holder(PLACES[0], LEASE_SECONDS + 5) is None
    assert held.take(asked("two"), LEASE_SECONDS + 5)
    assert held.take(asked("two", 0), LEASE_SECONDS + 6)
    assert held.take(asked("one"), LEASE_SECONDS + 6)
    held.forget(3 * LEASE_SECONDS)
    assert held.holder(PLACES[0], 0) is None


async def test_two_processes_that_ask_at_the_same_moment_never_get_the_same_event(settings: Settings) -> None:
    async with processes(settings) as both:
        sessions = [(leases, f"{n}/{i}") for n, leases in enumerate(both) for i in range(10)]
        got = await asyncio.gather(*(leases.take(PLACES, session) for leases, session in sessions))
        assert None not in got and len(set(got)) == len(sessions)
        again = await asyncio.gather(*(leases.take(PLACES, session) for leases, session in sessions))
        assert again == got
        for (leases, session), place, (_, other) in zip(sessions, got, reversed(sessions), strict=True):
            assert place is not None
            assert await leases.holds(place, session) and not await leases.holds(place, other)


async def test_what_ends_goes_to_another_process(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with processes(settings) as (one, two):
        assert await one.take(PLACES[:1], "a") == PLACES[0]
        assert await two.take(PLACES[:1], "b") is None
        await two.release(PLACES[0], "b")
        assert await two.take(PLACES[:1], "b") is None
        await one.skip(PLACES[0], "a")
        assert await one.take(PLACES[:1], "a") is None
        monkeypatch.setattr(module, "LEASE_SECONDS", 0.2)
        assert await two.take(PLACES[:1], "b") == PLACES[0]
        await asyncio.sleep(0.3)
        assert not await two.holds(PLACES[0], "b")
        assert await one.take(PLACES[:1], "c") == PLACES[0]


async def test_a_process_that_stops_gives_back_what_its_sessions_have(settings: Settings) -> None:
    async with processes(settings) as (one, two):
        assert await one.take(PLACES[:1], "a") == PLACES[0]
        stopped = Leases(settings)
        await stopped.start()
        assert await stopped.take(PLACES[1:2], "b") == PLACES[1]
        await stopped.stop()
        assert await two.take(PLACES[:2], "c") == PLACES[1]


def decision(report_id: str, reviewer: str) -> Review:
    return Review(
        sequence=0, report_id=report_id, start=0, end=4, fingerprint="f", reviewer=reviewer,
        decided_at=datetime.now(UTC), action="accept", before=FOUND, after=replace(FOUND, review="accept"),
    )  # fmt: skip


async def test_decisions_of_two_processes_at_once_are_one_chain(settings: Settings, tmp_path: Path) -> None:
    logs = [ReviewLog(settings) for _ in range(2)]
    for log in logs:
        await log.start()
    made = [(log, decision(f"r{i}", f"{n}")) for i in range(15) for n, log in enumerate(logs)]
    appended = await asyncio.gather(*(log.append(one) for log, one in made))
    written = [one for one in appended if one is not None]
    for log in logs:
        await log.refresh()
    late = linked(decision("late", "eve"), logs[0].reviews[3])
    assert is_late(late, logs[0].reviews)
    await logs[0]._tail.send("late", late)
    for log in logs:
        await log.refresh()
        await log.stop()
    assert sorted(one.sequence for one in written) == list(range(30))
    assert logs[0].reviews == logs[1].reviews == sorted(written, key=lambda one: one.sequence)
    fresh = ReviewLog(settings)
    await fresh.start()
    await fresh.stop()
    assert fresh.reviews == logs[0].reviews
    database = await asyncio.to_thread(
        open_database, Settings(database=str(tmp_path / "x.duckdb")), write=True
    )
    value = [encode(one) for one in (*logs[0].reviews, late)]
    messages = [Inbound("reviews", 0, i, b"k", one, 0.0) for i, one in enumerate(value)]
    for part in (messages[:20], messages[20:]):
        Follower(Settings(), database).apply(part)
    stored = list(database.query("SELECT report_id, reviewer FROM reviews ORDER BY sequence")[1])
    database.close()
    assert stored == [(one.report_id, one.reviewer) for one in logs[0].reviews]


def test_only_what_lost_its_place_is_late() -> None:
    first = linked(decision("a", "ann"), None)
    second, third = linked(decision("b", "ann"), first), linked(decision("c", "bob"), first)
    fourth = linked(decision("d", "bob"), second)
    assert verify([first, second, third, second, fourth]) == [first, second, fourth]
    assert verify([third, fourth], [first, second]) == [fourth]
    for broken in ([first, fourth], [first, second, replace(third, reviewer="eve"), fourth], [second]):
        with pytest.raises(BrokenChain):
            verify(broken)


async def test_what_a_cancelled_request_has_read_is_not_lost(settings: Settings) -> None:
    """A browser that leaves while a decision is waited for ends its request."""
    tail = Tail(settings, LEASES)
    await tail.start()
    try:
        offset = await tail.send("r0", asked("one"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tail.read(past=offset + 1), 1)
        assert [message.offset for message in await tail.read()] == [offset]
        assert await tail.read() == []
    finally:
        await tail.stop()


async def test_who_waits_for_a_silent_broker_does_not_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waited ten seconds more than the one before."""
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        await create(settings)
        log = ReviewLog(settings)
        await log.start()
    monkeypatch.setattr("streams.reviews.tail.ANSWER_SECONDS", 2.0)
    waiting = [asyncio.create_task(log.refresh()) for _ in range(4)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait(waiting, timeout=1.0)
    assert all(task.done() for task in waiting)
    assert {type(task.exception()) for task in waiting} == {TopicsError}
    await log.stop()
