"""A chain of decisions whose end was cut off is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streams.broker.embedded import EmbeddedBroker
from streams.records import Review
from streams.reviews.chain import BrokenChain
from streams.reviews.chain_head import Head, KeptHead
from streams.reviews.log import ReviewLog
from streams.settings import Settings
from tests.streams.store.messages import FOUND


def review(report: str) -> Review:
    return Review(
        sequence=0, report_id=report, start=0, end=4, fingerprint="f", reviewer="ann",
        decided_at=datetime(2026, 3, 4, tzinfo=UTC), action="accept", before=FOUND, after=FOUND,
    )  # fmt: skip


async def decide(settings: Settings, *reports: str) -> list[Review]:
    log = ReviewLog(settings)
    try:
        await log.start()
        for report in reports:
            await log.append(review(report))
    finally:
        await log.stop()
    return log.reviews


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


async def test_a_decision_that_is_taken_while_the_chain_is_read_does_not_look_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
