from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

import orjson
import pytest
from aiokafka.errors import KafkaConnectionError

from streams.broker.ranges import Stalled
from streams.intake.authors import AuthorKeys
from streams.intake.duplicates import Window
from streams.intake.filter import Filter, Terms
from streams.intake.intake import PostIntake, Privacy
from streams.intake.items import AuthorDeletion, Deletion, Item, Post
from streams.records import MAX_TEXT, Report
from streams.sources import runner as module
from streams.sources.delivery import MAX_UNCONFIRMED
from streams.sources.runner import RecentDeletions
from streams.sources.source import Interrupted, SourceFailed, Step
from tests.streams.polling import until
from tests.streams.sources.kept import KeptDelivery, Scripted, runner, step, texts
from tests.streams.sources.pass_all import PassAll
from tests.streams.sources.players.running import running, sample


class Hashing(PassAll):
    """Knows authors, and filters a word."""

    def take(self, post: Post) -> Report | None:
        return None if "cat" in post.text else super().take(post)

    def author_hashes(self, author: str) -> frozenset[str]:
        return frozenset({f"hash of {author}"})


def post(id_: str = "a", text: str = "awake") -> Post:
    return Post(id=id_, text=text)


def outcome(name: str) -> float:
    return sample("pv_source_items_total", source="scripted", outcome=name)


async def test_the_position_is_written_only_once_all_before_it_is_confirmed() -> None:
    delivery = KeptDelivery(holds=True)
    one = runner(Scripted(step(post("a"), post("b"), position={"n": 2})), delivery)
    await one.run()
    checkpoint = asyncio.create_task(one.checkpoint())
    await asyncio.sleep(0.05)
    assert delivery.positions == []
    delivery.confirm()
    await checkpoint
    assert delivery.positions == [("scripted", {"n": 2}, 2)]
    await one.checkpoint()
    assert len(delivery.positions) == 1
    delivery = KeptDelivery(holds=True)
    one = runner(Scripted(step(post(), position={"n": 1})), delivery)
    await one.run()
    delivery.confirm(ConnectionError("refused"))
    with pytest.raises(ConnectionError):
        await one.checkpoint()
    assert delivery.positions == []


async def test_no_more_is_read_than_the_broker_confirms() -> None:
    steps = [step(post(str(n)), position={"n": n}) for n in range(MAX_UNCONFIRMED + 50)]
    source, delivery = Scripted(*steps), KeptDelivery(holds=True)
    one = runner(source, delivery)
    async with running(one):
        await until(lambda: len(delivery.sent) == MAX_UNCONFIRMED + 1)
        await asyncio.sleep(0.05)
        assert len(delivery.sent) == MAX_UNCONFIRMED + 1
        assert len(source._steps) == 49
        delivery.holds = False
        delivery.confirm()
        await until(lambda: not source._steps)


async def test_a_deletion_is_a_tombstone_and_a_post_after_it_is_sent_only_where_ids_come_again() -> None:
    stale, delivery = outcome("stale"), KeptDelivery()
    await runner(Scripted(step(Deletion("a"), post("a"), post("b"))), delivery).run()
    assert [(key, value is None) for _, key, value in delivery.sent] == [("a", True), ("b", False)]
    assert outcome("stale") == stale + 1
    delivery = KeptDelivery()
    await runner(Scripted(step(Deletion("a"), post("a")), reuses_ids=True), delivery).run()
    assert delivery.state() == {"a": "awake"}


async def test_what_no_report_can_be_is_malformed_and_what_has_no_text_is_filtered() -> None:
    malformed, filtered = outcome("malformed"), outcome("filtered")
    bad: list[Item] = [
        post(""), post("i" * 257), post("a\nb"), post("a", "x" * (MAX_TEXT + 1)), Deletion(""),
        post("a", "half \ud83d"),
    ]  # fmt: skip
    delivery = KeptDelivery()
    blank = [post("b", " "), post("c", "my cat")]
    await runner(Scripted(step(*bad, *blank, malformed=2)), delivery, intake=Hashing()).run()
    assert delivery.sent == []
    assert (outcome("malformed"), outcome("filtered")) == (malformed + len(bad) + 2, filtered + 2)


async def test_an_edit_that_the_filter_leaves_out_deletes_what_it_replaced() -> None:
    edits = [replace(post("a", "my cat"), edited=True), replace(post("b", ""), edited=True)]
    delivery = KeptDelivery()
    await runner(Scripted(step(post("a"), post("b"), *edits)), delivery, intake=Hashing()).run()
    assert delivery.state() == {"a": None, "b": None}
    again = replace(post("a", "awake again"), edited=True)
    await runner(Scripted(step(again)), delivery, intake=Hashing()).run()
    assert delivery.state()["a"] == "awake again"


@pytest.mark.parametrize("text", ["awake " * MAX_TEXT, "half \ud83d"])
async def test_an_edit_that_no_report_can_have_deletes_what_it_replaced(text: str) -> None:
    delivery = KeptDelivery()
    await runner(Scripted(step(post("a"), replace(post("a", text), edited=True))), delivery).run()
    assert delivery.state() == {"a": None}


async def test_the_intake_knows_what_was_sent_where_a_source_does_not_state_an_edit() -> None:
    intake = PostIntake(Filter(Terms(["zoloft"]), ["en"]), Privacy(AuthorKeys(), ()), Window(1000, 7.0))
    delivery = KeptDelivery()
    lines = [post("a", "Zoloft kept me up"), post("a", "nothing to say"), post("b", "nothing to say")]
    await runner(Scripted(step(*lines), reuses_ids=True), delivery, intake=intake).run()
    assert delivery.state() == {"a": None}


async def test_the_reports_of_a_deleted_account_are_forgotten_before_the_position_is_written() -> None:
    forgotten: list[str] = []
    delivery, deleted = KeptDelivery(), outcome("deleted")

    async def forget(authors: Collection[str]) -> list[str]:
        assert delivery.positions == []
        forgotten.extend(authors)
        return ["a", "b", "c"]

    source = Scripted(step(AuthorDeletion("someone"), position={"n": 1}))
    one = runner(source, delivery, intake=Hashing(), forget_authors=forget)
    await one.run()
    await one.checkpoint()
    assert forgotten == ["hash of someone"]
    assert outcome("deleted") == deleted + 3
    assert len(delivery.positions) == 1


async def test_after_the_deletion_of_an_account_the_next_copy_of_its_post_is_a_first_sighting() -> None:
    text = "Zoloft keeps me awake all night, every night since I started it last month"
    keys = AuthorKeys(b"a key of sixteen")
    intake = PostIntake(Filter(None, ["en"]), Privacy(keys, ()), Window(1000, 1.0))

    async def forget(authors: Collection[str]) -> list[str]:
        return ["first"] if authors == keys.hashes("someone") else []

    delivery = KeptDelivery()
    one = runner(Scripted(), delivery, intake=intake, forget_authors=forget)
    await one.take(step(Post(id="first", text=text, author="someone"), position={"n": 1}))
    await one.take(step(AuthorDeletion("someone"), position={"n": 2}))
    await one.checkpoint()
    await one.take(step(Post(id="copy", text=text, author="another"), position={"n": 3}))
    assert "duplicate_of" not in orjson.loads(delivery.sent[-1][2] or b"")


async def test_accounts_are_searched_for_together_and_the_position_waits_for_it() -> None:
    asked: list[set[str]] = []
    delivery = KeptDelivery()

    async def forget(authors: Collection[str]) -> list[str]:
        asked.append(set(authors))
        return []

    one = runner(Scripted(), delivery, intake=Hashing(), forget_authors=forget)
    for n in range(4):
        await one.take(step(AuthorDeletion(f"author {n}"), position={"n": n}))
        await one.checkpoint()
    assert (asked, [p for _, p, _ in delivery.positions]) == ([{"hash of author 0"}], [{"n": 0}])
    await one.checkpoint(last=True)
    assert asked[1] == {f"hash of author {n}" for n in (1, 2, 3)}
    assert delivery.positions[-1][1] == {"n": 3}


@pytest.mark.parametrize("away", [KafkaConnectionError(), Stalled("nothing is delivered")])
async def test_a_broker_that_is_away_when_accounts_are_forgotten_puts_that_off(
    away: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FORGET_SECONDS", 0.0)
    errors, delivery = [away], KeptDelivery()

    async def forget(authors: Collection[str]) -> list[str]:
        if errors:
            raise errors.pop()
        return ["a"]

    one = runner(Scripted(), delivery, intake=Hashing(), forget_authors=forget)
    await one.take(step(AuthorDeletion("someone"), position={"n": 1}))
    await one.checkpoint()
    assert delivery.positions == []
    await one.checkpoint()
    assert [position for _, position, _ in delivery.positions] == [{"n": 1}]


async def test_a_deleted_account_without_a_key_is_counted_as_unresolved() -> None:
    before, delivery = outcome("unresolved"), KeptDelivery()
    one = runner(Scripted(step(AuthorDeletion("someone"), position={"n": 1})), delivery)
    await one.run()
    await one.checkpoint()
    assert outcome("unresolved") == before + 1


async def test_after_an_interruption_it_resumes_at_the_last_position() -> None:
    source = Scripted(
        step(post("a"), position={"n": 1}), Interrupted("closed"), step(post("b"), position={"n": 2})
    )
    delivery = KeptDelivery()
    one = runner(source, delivery, {"n": 0})
    before = sample("pv_source_reconnects_total", source="scripted", reason="closed")
    await one.run()
    assert source.starts == [{"n": 0}, {"n": 1}]
    assert sample("pv_source_reconnects_total", source="scripted", reason="closed") == before + 1
    assert texts(delivery.sent) == ["awake", "awake"]


async def test_a_refusal_ends_a_source_a_gap_is_counted_and_the_lag_is_measured() -> None:
    with pytest.raises(SourceFailed):
        await runner(Scripted(SourceFailed("no")), KeptDelivery()).run()
    gaps = sample("pv_source_gaps_total", source="scripted")
    await runner(Scripted(Step(gap=12.0, at=0.0), step(post(), position={})), KeptDelivery()).run()
    assert sample("pv_source_gaps_total", source="scripted") == gaps + 1
    assert sample("pv_source_lag_seconds", source="scripted") > 1e9


def test_only_the_last_deletions_are_remembered() -> None:
    deletions = RecentDeletions(limit=2)
    for id_ in ("a", "b", "a", "c"):
        deletions.add(id_)
    assert ["a" in deletions, "b" in deletions, "c" in deletions] == [True, False, True]
