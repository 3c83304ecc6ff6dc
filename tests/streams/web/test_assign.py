"""Reports that are assigned to people: conflicts, the chain, and where they are shown."""

from __future__ import annotations

import asyncio
import re
from html import unescape

import pytest

from streams.records import Assignment
from streams.reviews.log import ReviewLog
from streams.settings import Settings
from tests.streams.web.conftest import HOSTILE, Page
from tests.streams.web.test_review import fields, follow, stored_rows
from tests.streams.web.test_second import HEADER, Reviewer, reviewers


async def shown(reviewer: Reviewer, address: str) -> str:
    answer = await reviewer.client.get(address, headers={HEADER: reviewer.name})
    assert answer.status == 200
    return await answer.text()


async def form(reviewer: Reviewer, id_: str) -> dict[str, str]:
    html = await shown(reviewer, f"/report?id={id_}")
    part = html[html.index('action="/review/assign"') :]
    hidden = r'<input type="hidden" name="(\w+)" value="([^"]*)">'
    return {name: unescape(v) for name, v in re.findall(hidden, part[: part.index("</form>")])}


async def assigned(settings: Settings) -> list[tuple[str, str, str, str]]:
    log = ReviewLog(settings)
    await log.start()
    await log.stop()
    made = [one for one in log.decisions if isinstance(one, Assignment)]
    return [(one.reviewer, one.report_id, one.before, one.owner) for one in made]


@pytest.mark.slow
async def test_of_two_people_who_assign_a_report_the_second_is_told_so(brokered: Page) -> None:
    async with reviewers(brokered) as (ann, bob, _):
        forms = [await form(one, "r5") for one in (ann, bob)]
        sending = [
            one.send("/review/assign", made | {"owner": one.name})
            for one, made in zip((ann, bob), forms, strict=True)
        ]
        assert sorted(await asyncio.gather(*sending)) == [303, 409]
        assert await bob.send("/review/assign", forms[1] | {"owner": "bob"}) == 409
        ((by, _, before, owner),) = await assigned(brokered.settings)
        assert before == "" and owner == by
        await follow(brokered.settings)
        assert await ann.send("/review/assign", await form(bob, "r5") | {"owner": "cy"}) == 403, "of bob"
        assert await bob.send("/review/assign", await form(bob, "r5") | {"owner": ""}) == 303
        await follow(brokered.settings)
        assert f"{owner}: assign to {owner}" in (html := await shown(ann, "/report?id=r5"))
        assert "bob: assign to nobody" in html
        assert await bob.send("/review/assign", await form(bob, "r5") | {"report": "no such"}) == 404
    assert (await assigned(brokered.settings))[1:] == [("bob", "r5", owner, "")]


@pytest.mark.slow
async def test_a_reviewer_finds_what_is_assigned_in_the_search_and_in_the_queue(brokered: Page) -> None:
    async with reviewers(brokered) as (ann, bob, _):
        for id_, owner in (("r3", "bob"), ("r2", "bob"), ("r4", HOSTILE)):
            assert await ann.send("/review/assign", await form(ann, id_) | {"owner": owner}) == 303
        html = await bob.html("mine")
        assert "2 events wait" in html and "assigned to bob" in html, "before the store has it"
        assert fields(html)["report"] == "r3", "the least certain"
        assert await bob.decide("mine", {"action": "accept"}) == 303
        assert fields(await bob.html("mine"))["report"] == "r2"
        assert "No event waits for you" in await ann.html("mine")
        await follow(brokered.settings)
        for owner, expected in (("bob", {"r2", "r3"}), ("ann", set()), (HOSTILE[:60], {"r4"})):
            answer = await bob.client.get("/search", params={"owner": owner}, headers={HEADER: "bob"})
            html = await answer.text()
            assert set(re.findall(r'<a href="/report\?id=(\w+)">', html)) == expected
        assert '<option value="bob">me</option>' in html and "<img" not in html
        assert "r2</a>" in (found := await shown(bob, "/search?owner=bob")) and "assigned to bob" in found
    rows = stored_rows(brokered.settings, "SELECT report_id, review FROM events WHERE review IS NOT NULL")
    assert rows == [("r3", "accept")]


async def test_who_may_only_read_assigns_nothing(brokered: Page) -> None:
    async with brokered.served(web_user_header=HEADER, web_reviewers="ann") as browser:
        reader = Reviewer(browser(), "dan")
        assert "/review/assign" not in await shown(reader, "/report?id=r5")
        assert await reader.send("/review/assign", {"report": "r5", "version": "-1", "owner": "dan"}) == 403
