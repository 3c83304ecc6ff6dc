"""Events that are accepted together, decisions taken back one after the other, and the day so far."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from models.types import Mention
from streams.records import Review
from streams.reviews.log import ReviewLog
from streams.settings import Settings
from streams.web import same
from streams.web.today import day_of, last_step
from tests.streams.store.messages import FOUND, NOON, event, report
from tests.streams.web.conftest import Client, Page, fill
from tests.streams.web.test_form import shown, waiting
from tests.streams.web.test_review import chain, follow, given, stored_rows
from tests.streams.web.test_second import reviewers

#: Undecided events of the words of r5, and those that differ from it in something; r2 to r5 are alike.
OTHERS: dict[str, dict[str, Any]] = {
    "capital": {"text": "FELT SICK on sertraline"}, "words": {"text": "was sick on sertraline"},
    "negated": {"negated": True}, "possible": {"hypothetical": True}, "other": {"other_experiencer": True},
    "code": {"pt": "Insomnia"}, "nil": {"pt": None}, "drug": {"drug": "lithium"},
}  # fmt: skip


def others(path: Path) -> None:
    made = []
    for i, (id_, changes) in enumerate(OTHERS.items()):
        flags = dict(changes)
        text = flags.pop("text", "felt sick on sertraline")
        made.append(
            report(
                id_, 20 + i, event(**flags), text=text, mentions=(Mention(0, 9, text[:9], "ADE", 0.9),),
                record_id=f"posts/{id_}/o{i}/normalization@1",
            )
        )  # fmt: skip
    fill(path, made)


async def link_of(client: Client) -> tuple[int, str]:
    html = await shown(client)
    ((address, count),) = re.findall(r'data-key="m" href="([^"]+)">(\d+) events with the same words', html)
    return int(count), unescape(address)


def form_in(html: str) -> dict[str, Any]:
    (csrf,) = set(re.findall(r'name="csrf" value="(\w+)"', html))
    events = [unescape(value) for value in re.findall(r'name="event" value="([^"]+)" checked', html)]
    return {"csrf": csrf, "order": "uncertainty", "event": events}


async def test_events_of_the_same_words_code_flags_and_drugs_are_accepted_together(brokered: Page) -> None:
    others(Path(brokered.settings.database))
    async with brokered.served() as browser:
        one, two = browser(), browser()
        assert (await given(one))["report"] == "r5" and (await given(two))["report"] == "r4"
        count, address = await link_of(one)
        html = await shown(one, address)
        form = form_in(html)
        assert count == 6 == len(form["event"])  # r1 to r5 are of sertraline, and the capital letters
        assert "6 undecided events have the words" in html and "took sertraline and" in html
        for id_ in set(OTHERS) - {"capital"}:
            assert f">{id_}</small>" not in html
        answer = await one.post("/review/same", data=form)
        assert answer.status == 409 and "5 events were accepted. 1 were changed" in await answer.text()
        assert waiting(await shown(one)) == 14 - 5
        again = await one.post("/review/same", data=form)
        assert "0 events were accepted" in await again.text()
    reviews = await chain(brokered.settings)
    assert {review.action for review in reviews} == {"accept"} and len(reviews) == 5
    assert "r4" not in {review.report_id for review in reviews}  # that is with somebody else
    await follow(brokered.settings)
    assert len(stored_rows(brokered.settings, "SELECT 1 FROM events WHERE review = 'accept'")) == 5


async def test_what_was_accepted_together_is_taken_back_together_and_then_the_steps_before(
    brokered: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same, "MOST", 3)
    async with reviewers(brokered) as (ann, bob, _):
        await ann.decide("uncertainty", {"action": "reject"})
        await ann.decide("uncertainty", {"action": "correct", "negated": "on"})
        await bob.decide("uncertainty", {"action": "reject"})
        _, address = await named(ann)
        html = await (await ann.client.get(address, headers={"X-User": "ann"})).text()
        form = form_in(html)
        assert len(form["event"]) == 2
        assert await ann.send("/review/same", form) == 303
        html = await ann.html("uncertainty")
        assert "your last decisions: accept Nausea, 2 times" in html
        assert "Today: 4 by you (accept 2, correct 1, reject 1), 5 by all" in html
        for left in ("2 by you (correct 1, reject 1), 3", "1 by you (reject 1), 2", "0 by you, 1"):
            assert await ann.undo() == 303
            assert f"Today: {left} by all" in await ann.html("uncertainty")
        assert "/review/undo" not in await ann.html("uncertainty")
        assert "your last decision: reject" in await bob.html("uncertainty")
    reviews = await chain(brokered.settings)
    assert [review.action for review in reviews[5:]] == ["undo"] * 4


async def named(reviewer: Any) -> tuple[int, str]:
    html = await reviewer.html("uncertainty")
    ((address, count),) = re.findall(r'data-key="m" href="([^"]+)">(\d+) events', html)
    return int(count), unescape(address)


@pytest.mark.parametrize("value", ["", "[", "[1]", '["r5", "x", 1, "f", "s"]', "{}", "null", "9"])
async def test_a_form_that_names_no_events_is_refused(brokered: Page, value: str) -> None:
    async with brokered.served() as browser:
        client = browser()
        _, address = await link_of(client)
        form = form_in(await shown(client, address)) | {"event": [value]}
        assert (await client.post("/review/same", data=form)).status == web.HTTPBadRequest.status_code
    assert await chain(brokered.settings) == []


async def test_a_reader_and_who_sees_no_texts_accept_nothing_together(brokered: Page) -> None:
    async with brokered.served() as browser:
        _, address = await link_of(browser())
    async with brokered.served(web_texts=False) as browser:
        assert 'data-key="m"' not in await shown(browser())
        assert (await browser().get(address)).status == web.HTTPForbidden.status_code
    async with brokered.served(web_user_header="X-User", web_reviewers="ann") as browser:
        answer = await browser().get(address, headers={"X-User": "eve"})
        assert answer.status == web.HTTPForbidden.status_code


def test_the_time_of_a_decision_leaves_out_pauses_and_what_was_made_together() -> None:
    log = ReviewLog(Settings())
    made = Review(
        sequence=0, report_id="r", start=0, end=1, fingerprint="f", reviewer="ann", decided_at=NOON,
        action="accept", before=FOUND, after=replace(FOUND, review="accept"),
    )  # fmt: skip
    midnight = datetime(2026, 3, 4, tzinfo=UTC)
    seconds = [-1, 0, 10, 10, 10, 14, 5000, 5020]
    log.reviews = [
        replace(made, sequence=i, report_id=f"r{i}", decided_at=midnight + timedelta(seconds=s))
        for i, s in enumerate(seconds)
    ]
    day = day_of(log, "ann", NOON)
    assert (day.mine, day.all, day.seconds) == ({"accept": 7}, 7, 10)
    assert day_of(log, "bob", NOON).mine == {} and day_of(log, "bob", NOON).seconds is None
    log.reviews = log.reviews[:5]
    assert [review.sequence for review in last_step(log, "ann")] == [4, 3, 2]
