"""The review queue: leases, decisions, the chain, and what comes of it in the store."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from streams.broker.embedded import EmbeddedBroker
from streams.records import Review
from streams.replay.gold import read_gold
from streams.reviews.chain import BrokenChain, verify
from streams.reviews.examples import gold_lines
from streams.reviews.log import ReviewLog
from streams.settings import Settings
from streams.store.follow import Follower
from streams.store.open_database import open_database
from tests.streams.store.messages import event, message, report
from tests.streams.web.conftest import Client, Page


def fields(html: str) -> dict[str, str]:
    """The hidden fields of the form of a decision."""
    form = html[html.index('id="decision"') :]
    hidden = r'<input type="hidden" name="(\w+)" value="([^"]*)">'
    return {name: unescape(value) for name, value in re.findall(hidden, form[: form.index("</form>")])}


async def given(client: Client) -> dict[str, str]:
    """The event that the queue gives."""
    answer = await client.get("/review")
    assert answer.status == 200
    return fields(await answer.text())


async def secret(client: Client) -> str:
    html = await (await client.get("/login")).text()
    return str(re.findall(r'name="csrf" value="(\w+)"', html)[0])


async def sent(client: Client, path: str, data: dict[str, str]) -> int:
    answer = await client.post(path, data=data, allow_redirects=False)
    return answer.status


async def follow(settings: Settings) -> None:
    """What `pvstream store --until-end` does."""
    database = await asyncio.to_thread(open_database, settings, write=True)
    try:
        async with asyncio.timeout(60):
            await Follower(settings, database).run(asyncio.Event(), until_end=True)
    finally:
        database.close()


async def chain(settings: Settings) -> list[Review]:
    """All decisions."""
    log = ReviewLog(settings)
    await log.start()
    await log.stop()
    return log.reviews


def stored_rows(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    database = open_database(settings)
    found = list(database.query(sql)[1])
    database.close()
    return found


@pytest.mark.parametrize("pages", [1, 2])
async def test_reviewers_never_get_the_same_event(brokered: Page, tmp_path: Path, pages: int) -> None:
    """Of one page, or of two that share nothing but the broker and the store."""
    async with brokered.served() as browser, brokered.served(state=tmp_path / "other") as of_another:
        one, two = browser(), (browser, of_another)[pages - 1]()
        for client in (one, two):
            await client.get("/")
        decided = []
        for _ in range(3):
            forms = await asyncio.gather(given(one), given(two))
            assert forms[0]["report"] != forms[1]["report"]
            stolen = forms[0] | {"csrf": forms[1]["csrf"], "action": "accept"}
            assert await sent(two, "/review", stolen) == 409
            pairs = zip((one, two), forms, strict=True)
            done = [sent(client, "/review", form | {"action": "accept"}) for client, form in pairs]
            assert await asyncio.gather(*done) == [303, 303]
            decided += [form["report"] for form in forms]
        assert len(set(decided)) == 6
        assert "No event waits" in await (await one.get("/review")).text()
    reviews = await chain(brokered.settings)
    assert sorted(review.report_id for review in reviews) == sorted(decided)
    assert verify(reviews) == reviews
    changed = [replace(reviews[0], reviewer="eve"), *reviews[1:]]
    for broken in (changed, reviews[1:], [*reviews[:2], *reviews[3:]]):
        with pytest.raises(BrokenChain):
            verify(broken)


@pytest.mark.slow
async def test_decisions_win_in_the_store_also_over_a_later_release_and_become_gold(brokered: Page) -> None:
    settings = brokered.settings
    async with brokered.served() as browser:
        client = browser()
        form = await given(client)
        assert form["report"] == "r5"  # of the lowest cosine
        assert await sent(client, "/review", form | {"action": "correct", "term": "no such term"}) == 400
        corrected = form | {"action": "correct", "term": "sleepless", "negated": "on", "reason": "reads so"}
        assert await sent(client, "/review", corrected) == 303
        assert await sent(client, "/review", corrected) == 409
        form = await given(client)
        assert form["report"] == "r4"
        assert await sent(client, "/review", form | {"action": "reject"}) == 303
        await follow(settings)
        where = "WHERE report_id IN ('r4', 'r5')"
        sql = f"SELECT pt, serious, negated, review FROM events {where} ORDER BY report_id"
        expected = [("Nausea", False, False, "reject"), ("Insomnia", True, True, "correct")]
        assert stored_rows(settings, sql) == expected
        pairs = f"SELECT pt, affirmed FROM pairs {where}"
        assert stored_rows(settings, pairs) == [("Insomnia", False)]
        await asyncio.to_thread(write_again, settings, "r5", 5)
        assert stored_rows(settings, sql) == expected
        database = open_database(settings)
        lines = list(gold_lines(database))
        database.close()
        gold = read_gold(iter(lines))  # type: ignore[arg-type]
        assert gold.records["r4"]["event"] == frozenset()
        assert [d[3] for d in gold.records["r5"]["event"]] == ["Insomnia"]
        html = await (await client.get("/review")).text()
        undo = dict(re.findall(r'name="(csrf|sequence)" value="(\w+)"', html[html.index("/review/undo") :]))
        assert await sent(client, "/review/undo", undo) == 303
        assert await sent(client, "/review/undo", undo) == 409
        await follow(settings)
        assert stored_rows(settings, sql)[0] == ("Nausea", False, False, None)
        assert len(stored_rows(settings, pairs)) == 2


async def test_a_decision_on_a_code_that_a_later_release_has_changed_is_refused(brokered: Page) -> None:
    async with brokered.served() as browser:
        client = browser()
        form = await given(client)
        assert form["report"] == "r5"
        await asyncio.to_thread(write_again, brokered.settings, "r5", 5)
        again = await given(client)
        assert again == form  # by a later release too, but the same event
        await asyncio.to_thread(write_again, brokered.settings, "r5", 5, "Insomnia", 901)
        assert await sent(client, "/review", form | {"action": "accept"}) == 409
        while (form := await given(client))["report"] != "r5":
            assert await sent(client, "/review", form | {"action": "skip"}) == 303
        assert await sent(client, "/review", form | {"action": "accept"}) == 303
    assert [review.after.pt for review in await chain(brokered.settings)] == ["Insomnia"]


def write_again(settings: Settings, id_: str, i: int, pt: str = "Nausea", offset: int = 900) -> None:
    """The same text by a later release, with the same span; the place leaves the consumer where it is."""
    at, text = len("took sertraline and "), f"took sertraline and felt sick {i}"
    made = report(id_, offset, event(pt=pt), text=text, record_id=f"posts/{id_}/f{i}/normalization@2")
    mention = replace(made.mentions[0], start=at, end=at + 9)
    database = open_database(settings, write=True)
    Follower(settings, database).apply([message(-1, replace(made, mentions=(mention,)))])
    database.close()


def test_a_decision_names_no_word_of_a_report() -> None:
    assert {"text", "mention", "words"}.isdisjoint(Review.__slots__)


async def test_a_form_that_is_sent_several_times_at_once_is_one_decision(brokered: Page) -> None:
    async with brokered.served() as browser:
        client = browser()
        form = await given(client) | {"action": "accept"}
        found = await asyncio.gather(*(sent(client, "/review", form) for _ in range(4)))
        assert sorted(found) == [303, 409, 409, 409]
        html = await (await client.get("/review")).text()
        undo = dict(re.findall(r'name="(csrf|sequence)" value="(\w+)"', html[html.index("/review/undo") :]))
        found = await asyncio.gather(*(sent(client, "/review/undo", undo) for _ in range(4)))
        assert sorted(found) == [303, 409, 409, 409]
    assert [review.action for review in await chain(brokered.settings)] == ["accept", "undo"]


async def test_events_that_the_store_does_not_know_as_decided_do_not_hide_the_others(
    brokered: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("queue", "offers"):
        monkeypatch.setattr(f"streams.web.{module}.FETCHED", 2)
    async with brokered.served() as browser:
        client = browser()
        for id_, action in (("r5", "accept"), ("r4", "skip"), ("r3", "accept"), ("r2", "reject")):
            form = await given(client)
            assert form["report"] == id_
            assert await sent(client, "/review", form | {"action": action}) == 303
        assert (await given(client))["report"].startswith("r1")


async def test_without_a_broker_nothing_can_be_reviewed(stored: Page, tmp_path: Path) -> None:
    async with stored.served() as browser:
        client = browser()
        assert "set PV_BROKER" in await (await client.get("/review")).text()
        assert await sent(client, "/review", {"csrf": await secret(client), "action": "accept"}) == 403


async def test_without_its_broker_the_page_says_so_and_ends_all_the_same(
    brokered: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.reviews.tail.ANSWER_SECONDS", 0.5)
    monkeypatch.setattr("streams.reviews.tail.DELIVERY_SECONDS", 0.5)
    monkeypatch.setattr("streams.reviews.tail.STOP_SECONDS", 0.5)
    broker = EmbeddedBroker()
    async with asyncio.timeout(60), brokered.served(broker=f"kafka://{broker.bootstrap}") as browser:
        client = browser()
        form = await given(client)
        broker.close()
        answers = [await client.get("/review")]
        for action in ("accept", "skip"):
            answers.append(await client.post("/review", data=form | {"action": action}))
        answers.append(await client.post("/review/undo", data=form | {"sequence": "0"}))
        assert [answer.status for answer in answers] == [503] * 4
        texts = [await answer.text() for answer in answers]
        assert "The broker cannot be used at present. Load this page again later." in texts[0]
        assert all("It is not known whether this was saved" in text for text in texts[1:])
        assert (await client.get("/")).status == 200


async def test_a_chain_that_is_not_whole_is_named_to_the_reviewer(brokered: Page) -> None:
    async with brokered.served() as browser:
        client = browser()
        await given(client)
        async with AIOKafkaProducer(**brokered.settings.client()) as producer:
            await producer.send_and_wait("reviews", b"{}", key=b"r5", partition=0)
            assert (await client.get("/review")).status == 200
            next_one = b'{"sequence": 0, "previous": ""}'
            await producer.send_and_wait("reviews", next_one, key=b"r5", partition=0)
        answer = await client.get("/review")
        assert answer.status == 503 and "the decisions are not whole: decision 0" in await answer.text()
