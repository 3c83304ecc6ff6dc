"""Records on `reviews` that no page has written, another topic of that name, and a chain that was cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer

from streams.broker.embedded import EmbeddedBroker
from streams.broker.topic_ids import TopicId, topic_ids
from streams.codec import encode
from streams.records import Review
from streams.reviews import tail
from streams.reviews.chain import BrokenChain, linked
from streams.reviews.chain_head import Head, KeptHead
from streams.reviews.log import ReviewLog
from streams.settings import Settings
from streams.topics import TopicsError
from tests.streams.cli.command_line import CommandLine
from tests.streams.store.messages import FOUND
from tests.streams.store.test_signal_decisions import on_signal

SECRET = "secret-of-a-patient"
#: None of them is a decision, and none states the next place of the chain.
FOREIGN: tuple[bytes | None, ...] = (
    None, b"", b"{", SECRET.encode(), b"[]", b"7", b'{"sequence": "0"}',
    orjson.dumps({"sequence": 99, "previous": "", "reason": SECRET}),
)  # fmt: skip


async def send(settings: Settings, *values: bytes | None) -> None:
    async with AIOKafkaProducer(**settings.client()) as producer:
        for value in values:
            await producer.send_and_wait("reviews", value, key=b"k", partition=0)


@asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[ReviewLog]:
    log = ReviewLog(settings)
    try:
        await log.start()
        yield log
    finally:
        await log.stop()


async def test_records_that_are_no_decisions_are_passed_and_counted_and_do_not_end_reviewing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        await send(settings, *FOREIGN)
        first = await decide(settings, "a")
        async with started(settings) as log:
            assert log.passed == len(FOREIGN) and log.reviews == first
            await send(settings, FOREIGN[2], FOREIGN[-1])
            second = await log.append(review("b"))
            await send(settings, FOREIGN[3])
            third = await log.append(review("c"))
            assert log.reviews == [*first, second, third] and log.passed == len(FOREIGN) + 3
        async with started(settings) as again:
            assert again.reviews == log.reviews and again.passed == log.passed
    said = (
        f"records that are no decisions, passed: {len(FOREIGN)}, the last one reviews/0@{len(FOREIGN) - 1}: "
    )
    assert said in caplog.text and SECRET not in caplog.text


async def test_a_record_that_cannot_be_read_and_has_the_next_place_breaks_the_chain() -> None:
    """A decision that was changed, or of a later version: what follows it cannot be known."""
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        (first,) = await decide(settings, "a")
        unknown = orjson.loads(encode(linked(review("b"), first))) | {"action": "of a later version"}
        async with started(settings) as log:
            await send(settings, b"{", orjson.dumps(unknown))
            with pytest.raises(BrokenChain, match="decision 1 cannot be read, reviews/0@2: action"):
                await log.refresh()
            with pytest.raises(BrokenChain, match="decision 1 cannot be read"):
                await log.append(review("c"))


async def test_a_decision_that_was_replaced_by_anything_else_breaks_the_chain() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        decided = await decide(settings, "a", "b", "c")
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", state=settings.state_folder / "other")
        await send(settings, encode(decided[0]), b"{", encode(decided[2]))
        with pytest.raises(BrokenChain, match="decision 2 does not follow"):
            await decide(settings)


async def test_a_topic_created_again_is_not_taken_for_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    created_again: list[bool] = []

    async def ids(client: Any, names: Sequence[str]) -> dict[str, TopicId]:
        found = await topic_ids(client, names)
        return {name: replace(id_, topic="another") if created_again else id_ for name, id_ in found.items()}

    monkeypatch.setattr(tail, "topic_ids", ids)
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        async with started(settings) as log:
            await log.append(review("a"))
            created_again.append(True)
            for use in (log.refresh(), log.append(review("b"))):
                with pytest.raises(TopicsError, match="reviews was created again"):
                    await use
            assert [one.report_id for one in log.reviews] == ["a"]


def test_the_command_verify_says_how_many_records_are_no_decisions(pvstream: CommandLine) -> None:
    with EmbeddedBroker() as broker:
        pvstream.set("PV_BROKER", f"kafka://{broker.bootstrap}")
        asyncio.run(send(Settings(), b"{", None))
        answer = pvstream("reviews", "verify")
        assert answer.code == 0 and "0 decisions, the chain is whole" in answer.one_line
        assert "2 records are no decisions" in answer.one_line


def review(report: str) -> Review:
    return Review(
        sequence=0, report_id=report, start=0, end=4, fingerprint="f", reviewer="ann",
        decided_at=datetime(2026, 3, 4, tzinfo=UTC), action="accept", before=FOUND, after=FOUND,
    )  # fmt: skip


async def decide(settings: Settings, *reports: str) -> list[Review]:
    async with started(settings) as log:
        for report in reports:
            await log.append(review(report))
    return log.reviews


async def test_decisions_on_signals_and_events_are_one_chain_that_another_process_reads_alike() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        (first,) = await decide(settings, "a")
        async with started(settings) as log, started(settings) as other:
            signal = await log.append(on_signal(0))
            assert signal is not None and (signal.sequence, signal.previous) == (1, first.hash)
            assert await other.append(on_signal(0), lambda: not other.signals) is None, "it sees the first"
            last = await other.append(review("b"))
            await log.refresh()
            for seen in (log, other):
                assert seen.decisions == [first, signal, last]
                assert (seen.reviews, seen.signals) == ([first, last], [signal])
        async with started(settings) as again:
            assert again.decisions == log.decisions
        assert KeptHead(settings).read() == Head(3, again.decisions[-1].hash)


async def test_a_topic_with_fewer_decisions_than_were_kept_is_refused() -> None:
    with EmbeddedBroker() as broker:
        whole = Settings(broker=f"kafka://{broker.bootstrap}")
        decided = await decide(whole, "a", "b")
        assert KeptHead(whole).read() == Head(2, decided[-1].hash)
        assert await decide(whole, "c") == [*decided, (await decide(whole))[-1]]
    with EmbeddedBroker() as broker:
        cut = Settings(broker=f"kafka://{broker.bootstrap}")
        with pytest.raises(BrokenChain, match="0 decisions, but it had 3"):
            await decide(cut)


async def test_a_decision_taken_during_a_read_does_not_look_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        page, checker = ReviewLog(settings), ReviewLog(settings)
        await page.start()
        read = checker._tail.read

        async def read_and_decide(past: int = -1) -> list[Any]:
            found = await read(past)
            await page.append(review("a"))
            return found

        monkeypatch.setattr(checker._tail, "read", read_and_decide)
        try:
            await checker.start()
            assert (checker.reviews, len(page.reviews)) == ([], 1)
        finally:
            await checker.stop()
            await page.stop()


def test_a_head_that_lags_behind_is_accepted_and_another_hash_is_not(state: Path) -> None:
    head = KeptHead(Settings())
    head.check([review("a")], head.read())
    head.write([])
    assert head.read() is None
    one, two = (replace(review(name), hash=name * 64) for name in "ab")
    head.write([one])
    head.check([one, two], head.read())
    with pytest.raises(BrokenChain, match="not the one that was kept"):
        head.check([two, one], head.read())
    head.path.write_text("{")
    with pytest.raises(BrokenChain, match=r"reviews\.json cannot be read"):
        head.read()
    assert head.path.is_relative_to(state)


def test_processes_of_one_machine_keep_the_head_in_turn_and_never_an_earlier_one(tmp_path: Path) -> None:
    decisions = [replace(review(str(i)), hash=f"{i:064}") for i in range(60)]

    def keep(first: int) -> None:
        kept = KeptHead(Settings(state=tmp_path))
        for length in range(first, len(decisions) + 1, 2):
            kept.write(decisions[:length])
            assert (kept.read() or Head(0, "")).length >= length

    with ThreadPoolExecutor(2) as pages:
        list(pages.map(keep, (1, 2)))
    last = KeptHead(Settings(state=tmp_path))
    last.write(decisions[:5])
    assert last.read() == Head(len(decisions), decisions[-1].hash)
