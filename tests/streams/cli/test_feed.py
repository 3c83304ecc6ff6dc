from __future__ import annotations

import asyncio

import pytest

from streams.cli.feed import BUDGET, GROWTH, Arrival, Tally, room
from streams.records import CodedReport, TaggedReport


def coded(id_: str, version: str = "v") -> Arrival:
    record = CodedReport(id=id_, text="x", source="posts", record_id=f"posts/{id_}/normalization@{version}")
    return Arrival("events", id_, "posts", record)


def tagged(id_: str) -> Arrival:
    record = TaggedReport(id=id_, text="x", source="posts", record_id=f"posts/{id_}/ner@v")
    return Arrival("mentions", id_, "posts", record)


def test_a_report_is_missing_until_it_comes_out_at_the_end_of_its_line() -> None:
    tally = Tally()
    tally.went_in("posts", "a", 10)
    tally.came_out(tagged("a"))
    assert tally.missing == ["posts/a"]
    tally.came_out(coded("a"))
    assert tally.missing == []
    assert tally.on_the_way == 0


def test_a_dead_letter_accounts_for_its_report() -> None:
    tally = Tally()
    tally.went_in("posts", "a", 10)
    tally.came_out(Arrival("posts.dead", "a", "posts", None, {"pv-reason": "poison"}))
    assert tally.missing == []
    assert tally.dead == [{"topic": "posts.dead", "id": "a", "pv-reason": "poison"}]


def test_the_same_id_of_another_topic_is_another_report() -> None:
    tally = Tally()
    tally.went_in("sentences", "a", 10)
    tally.came_out(coded("a"))
    assert tally.missing == ["sentences/a"]


def test_a_repeat_is_told_by_its_record_id() -> None:
    tally = Tally()
    tally.went_in("posts", "a", 10)
    tally.came_out(coded("a"))
    tally.came_out(coded("a", "after a reload"))
    assert tally.duplicated == []
    tally.came_out(coded("a"))
    assert tally.duplicated == ["posts/a/normalization@v"]


def test_the_same_report_fed_again_is_counted_once_on_the_way() -> None:
    tally = Tally()
    tally.went_in("posts", "a", 10)
    tally.went_in("posts", "a", 30)
    tally.came_out(coded("a"))
    assert tally.on_the_way == 0


async def test_feeding_waits_until_there_is_room() -> None:
    tally = Tally()
    tally.went_in("posts", "a", BUDGET // GROWTH)
    waiting = asyncio.create_task(room(tally, 100))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting), 0.05)
    tally.came_out(coded("a"))
    await asyncio.wait_for(waiting, 1)


async def test_a_report_larger_than_the_budget_goes_in_alone() -> None:
    await asyncio.wait_for(room(Tally(), BUDGET), 1)
