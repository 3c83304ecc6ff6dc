"""Second readings, disputes, and corrections of the span and the drugs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.records import FIRST, RESOLUTION, SECOND, Review
from streams.reviews.log import ReviewLog
from streams.store.follow import Follower
from streams.store.open_database import open_database
from streams.web.offers import TRIES
from streams.web.queue import READINGS
from tests.streams.store.messages import FOUND as AS_FOUND
from tests.streams.store.messages import deletion
from tests.streams.web.conftest import Client, Page, fill, reports
from tests.streams.web.test_review import chain, fields, follow, stored_rows

HEADER = "X-User"
COLUMNS = "span_start, span_end, mention, drugs, drug_evidence, pt, review"
ROW = f"SELECT {COLUMNS} FROM events WHERE report_id = 'r5'"
FOUND = (20, 29, "felt sick", '["sertraline"]', "relation", "Nausea")


@dataclass
class Reviewer:
    """A person at a browser of their own."""

    client: Client
    name: str

    async def html(self, order: str) -> str:
        answer = await self.client.get(f"/review?order={order}", headers={HEADER: self.name})
        assert answer.status == 200
        return await answer.text()

    async def given(self, order: str) -> dict[str, str]:
        return fields(await self.html(order))

    async def decide(self, order: str, changes: Mapping[str, str]) -> int:
        form = await self.given(order)
        return await self.send("/review", form | dict(changes))

    async def undo(self) -> int:
        html = await self.html("uncertainty")
        form = dict(re.findall(r'name="(csrf|sequence)" value="(\w+)"', html[html.index("/review/undo") :]))
        return await self.send("/review/undo", form)

    async def send(self, path: str, form: Mapping[str, str]) -> int:
        answer = await self.client.post(path, data=form, headers={HEADER: self.name}, allow_redirects=False)
        return answer.status


@asynccontextmanager
async def reviewers(page: Page) -> Any:
    async with page.served(web_user_header=HEADER, web_reviewers="ann,bob,cy") as browser:
        yield [Reviewer(browser(), name) for name in ("ann", "bob", "cy")]


async def readings(page: Page) -> list[tuple[str, int, str]]:
    return [(review.reviewer, review.reading, review.action) for review in await chain(page.settings)]


@pytest.mark.slow
async def test_a_second_reader_is_another_person_and_does_not_see_the_first_decision(brokered: Page) -> None:
    async with reviewers(brokered) as (ann, bob, cy):
        correct = {"action": "correct", "term": "Sleepless", "negated": "on"}
        assert await ann.decide("uncertainty", correct) == 303
        assert "No event waits for you" in await ann.html("second")
        await follow(brokered.settings)
        blind = await bob.html("second")
        assert "Nausea" in blind and "Insomnia" not in blind and "negated" not in text_of(blind)
        assert "/report?id=" not in blind
        form = fields(blind)
        assert (form["report"], form["start"], form["end"]) == ("r5", "20", "29")
        assert await bob.decide("second", {"action": "accept"}) == 303
        await follow(brokered.settings)
        assert stored_rows(brokered.settings, ROW)[0][-2:] == ("Insomnia", "correct")
        html = await cy.html("disputed")
        assert "by ann: correct, Insomnia, negated" in html and "by bob: accept, Nausea" in html
        assert "No event waits for you" in await cy.html("second")
        agreement = re.findall(r'<th scope="row">(\w+)</th><td>1</td><td>([\d.]+)</td><td>([^<]*)', html)
        assert agreement == [
            ("event", "1.00", "not defined"),
            ("code", "0.00", "0.00"),
            ("status", "0.00", "0.00"),
        ]
        assert await cy.decide("disputed", {"action": "second"}) == 303
        assert "No event waits for you" in await cy.html("disputed")
        await follow(brokered.settings)
        assert stored_rows(brokered.settings, ROW)[0][-2:] == ("Nausea", "accept")
        assert await ann.send("/review", form | {"csrf": "0"}) == 403
        assert await cy.undo() == 303
        assert "by bob" in await cy.html("disputed")
    assert await readings(brokered) == [
        ("ann", FIRST, "correct"), ("bob", SECOND, "accept"), ("cy", RESOLUTION, "accept"),
        ("cy", RESOLUTION, "undo"),
    ]  # fmt: skip


def text_of(html: str) -> str:
    """The text of the report as it is shown."""
    return html[html.index("<article>") : html.index("</article>")]


async def test_an_undone_second_reading_can_be_made_again_and_two_are_refused(brokered: Page) -> None:
    async with reviewers(brokered) as (ann, bob, cy):
        assert await ann.decide("uncertainty", {"action": "accept"}) == 303
        assert await ann.undo() == 303
        assert "No event waits for you" in await bob.html("second")
        assert await ann.decide("uncertainty", {"action": "accept"}) == 303
        form = await bob.given("second")
        assert await bob.send("/review", form | {"action": "reject"}) == 303
        assert await bob.undo() == 303
        assert await cy.decide("second", {"action": "accept"}) == 303
        assert await bob.send("/review", form | {"action": "reject"}) == 409
        assert "No event waits for you" in await bob.html("disputed")


@pytest.mark.slow
async def test_a_span_and_drugs_are_corrected_and_taken_back(brokered: Page) -> None:
    settings = brokered.settings
    async with reviewers(brokered) as (ann, *_):
        form = await ann.given("uncertainty")
        assert form["report"] == "r5"
        correct = {"action": "correct", "span_start": "25", "span_end": "29"}
        correct["drugs"] = "Prozac, lithium, Statins"
        assert await ann.send("/review", form | correct | {"span_end": "25"}) == 400
        assert await ann.send("/review", form | correct) == 303
        await follow(settings)
        drugs = '["fluoxetine","lithium","statin"]'
        expected = (25, 29, "sick", drugs, "reviewer", "Nausea", "correct")
        assert stored_rows(settings, ROW) == [expected]
        sql = "SELECT drug FROM pairs WHERE report_id = 'r5' ORDER BY drug"
        assert stored_rows(settings, sql) == [("fluoxetine",), ("lithium",)]
        html = await (await ann.client.get("/report?id=r5", headers={HEADER: "ann"})).text()
        assert '<mark class="ade">sick</mark>' in html and "probability 0.87" in html
        assert await ann.undo() == 303
        await follow(settings)
        assert stored_rows(settings, ROW) == [(*FOUND, None)]
        assert stored_rows(settings, sql) == [("sertraline",)]
        assert await ann.decide("uncertainty", {"action": "skip"}) == 303  # what came next before the undo
        assert (await ann.given("uncertainty"))["report"] == "r5"
        unchanged = {"action": "correct", "span_start": "20", "span_end": "29", "drugs": "sertraline"}
        assert await ann.decide("uncertainty", unchanged) == 303
        await follow(settings)
        assert stored_rows(settings, ROW) == [(*FOUND, "correct")]


async def test_events_that_are_gone_do_not_hide_the_last_one_that_waits(brokered: Page) -> None:
    made = reports(2 * TRIES)
    fill(Path(brokered.settings.database), made)
    log = ReviewLog(brokered.settings)
    await log.start()
    for i, one in enumerate(made):
        await log.append(
            Review(
                sequence=0, report_id=one.id, start=one.mentions[0].start, end=one.mentions[0].end,
                fingerprint=f"f{i}", reviewer="ann", decided_at=datetime.now(UTC), action="accept",
                before=AS_FOUND, after=replace(AS_FOUND, review="accept"),
            )
        )  # fmt: skip
    await log.stop()
    *gone, (last, *_) = READINGS["second"](log, "bob")
    database = open_database(brokered.settings, write=True)
    Follower(brokered.settings, database).apply([deletion(i, id_, 99) for i, (id_, *_) in enumerate(gone)])
    database.close()
    async with reviewers(brokered) as (_, bob, _):
        html = await bob.html("second")
        assert "1 event waits" in html and fields(html)["report"] == last


async def test_a_drug_in_words_of_the_report_stays_where_only_a_flag_is_corrected(brokered: Page) -> None:
    drugs = {"r3": "calcium, vitamin d", "r4": "white\r\npills", "r5": "aspirin, lithium"}
    worded = [
        replace(one, events=(replace(one.events[0], drugs=(drugs[one.id],)),), generations={"ner": 1})
        for one in reports()
        if one.id in drugs
    ]
    fill(Path(brokered.settings.database), worded)
    async with reviewers(brokered) as (ann, *_):
        for id_ in ("r5", "r4", "r3"):
            html = await ann.html("uncertainty")
            assert fields(html)["report"] == id_
            typed = re.sub(r"[\r\n]", "", unescape(re.findall(r'name="drugs"[^>]*value="([^"]*)"', html)[0]))
            changes = {"action": "correct", "negated": "on", "drugs": typed}
            assert await ann.send("/review", fields(html) | changes) == 303
        await follow(brokered.settings)
    sql = "SELECT drugs, drug_evidence, negated FROM events WHERE negated ORDER BY report_id"
    expected = [(orjson.dumps([drug]).decode(), "relation", True) for drug in drugs.values()]
    assert stored_rows(brokered.settings, sql) == expected


async def test_the_script_gets_the_text_as_it_is_with_its_carriage_returns(brokered: Page) -> None:
    text = "took it\r\n<&\"'>\rfelt sick 5"
    mention = replace(reports()[5].mentions[0], start=14, end=23)
    made = replace(reports()[5], text=text, mentions=(mention,), generations={"ner": 1})
    fill(Path(brokered.settings.database), [made])
    async with brokered.served() as browser:
        answer = await browser().get("/review")
        html = re.sub(r"\r\n?", "\n", (await answer.read()).decode())  # as a browser reads it
        assert unescape(re.findall(r'data-text="([^"]*)"', html)[0]) == text


@pytest.mark.parametrize("order", ["uncertainty", "disputed"])
async def test_every_shortcut_stands_next_to_what_it_does(brokered: Page, order: str) -> None:
    async with reviewers(brokered) as (ann, bob, cy):
        await ann.decide("uncertainty", {"action": "accept"})
        await bob.decide("second", {"action": "reject"})
        for path in (f"/review?order={order}", "/signals", "/"):
            answer = await cy.client.get(path, headers={HEADER: "cy"})
            html = unescape(await answer.text())
            keys = re.findall(r'data-key="(.)"', html)
            assert keys and sorted(keys) == sorted(set(keys))
            assert set(keys) <= set(re.findall(r"<kbd>(.)</kbd>", html)), path


async def test_without_texts_the_span_stays(brokered: Page) -> None:
    async with brokered.served(web_texts=False) as browser:
        html = await (await browser().get("/review")).text()
        assert "span_start" not in html and "data-text" not in html and "felt sick" not in html
