"""A day's work in a real Chromium: a safety officer's morning, a reviewer's hundred events, two people."""

from __future__ import annotations

import asyncio
import csv
import time
from dataclasses import replace
from pathlib import Path

import pytest

from models.types import Mention
from tests.integration.store.test_web import CHROMIUM, chromium, press
from tests.streams.store.messages import event, report
from tests.streams.web.conftest import HOSTILE, Page, brokered, fill, stored
from tests.streams.web.test_figures import END, made
from tests.streams.web.test_review import chain

__all__ = ["brokered", "stored"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; Debian has it as a package"),
]
NAME = HOSTILE[:60].strip()


@pytest.fixture
def morning(brokered: Page) -> Page:
    """Six weeks of reports; nausea with sertraline has risen."""
    fill(Path(brokered.settings.database), made())
    return brokered


async def test_a_safety_officer_goes_from_what_rises_to_its_reports_and_a_decision(
    morning: Page,
) -> None:
    async with chromium(morning) as (view, base, wrong):
        await view.goto(f"{base}/figures")
        rising = view.get_by_role("row").filter(has_text="rising")
        assert "Nausea" in await rising.inner_text()
        await view.get_by_role("link", name="sertraline, Nausea").click()
        await view.get_by_role("heading", name="sertraline and Nausea").wait_for()
        await view.get_by_role("link", name="f0", exact=True).click()
        assert "ner bbbbbbbbbbbb" in await view.locator("main").inner_text()
        # The days lead to their reports, for the mouse and in the table for the keyboard.
        await view.goto(f"{base}/figures?drug=sertraline")
        await view.locator("svg.chart a").nth(-1).click()
        await view.wait_for_url("**/search?since=*")
        await view.get_by_role("link", name="f0", exact=True).wait_for()
        # And the doubtful events are decided, with the reason.
        await view.goto(f"{base}/review")
        await view.keyboard.press("e")
        await view.keyboard.type("seen in the reports of the month")
        await view.keyboard.press("Escape")
        await press(view, "a")
        assert "Today: 1 by you (accept 1), 1 by all" in await view.locator("#day").inner_text()
        assert wrong == []
    (review,) = await chain(morning.settings)
    assert (review.report_id, review.reason) == ("f0", "seen in the reports of the month")


async def test_filters_are_kept_and_tables_are_saved(morning: Page, tmp_path: Path) -> None:
    async with chromium(morning) as (view, base, wrong):
        address = f"since={END}&drug=sertraline"
        await view.goto(f"{base}/search?{address}")
        await view.get_by_text("Kept filters").click()
        await view.get_by_label("Name of this filter").fill(NAME)
        await view.keyboard.press("Enter")
        await view.goto(f"{base}/search")
        await view.get_by_text("Kept filters").click()
        await view.get_by_role("link", name=NAME).click()
        assert sorted(view.url.partition("?")[2].split("&")) == sorted(address.split("&"))
        async with view.expect_download() as download:
            await view.get_by_text("Events as CSV").click()
        await (await download.value).save_as(tmp_path / "events.csv")
        lines = list(csv.DictReader((tmp_path / "events.csv").read_text().splitlines()))
        assert {line["report_id"] for line in lines} == {"f0", "quiet"}
        await view.get_by_text("Kept filters").click()
        await view.get_by_text(f"Forget {NAME}").click()
        assert await view.locator("#filters li").count() == 0
        await view.goto(f"{base}/figures")
        async with view.expect_download() as download:
            await view.get_by_text("Save as CSV").nth(1).click()
        await (await download.value).save_as(tmp_path / "terms.csv")
        table = list(csv.reader((tmp_path / "terms.csv").read_text("utf-8").splitlines()))
        assert ["Nausea", "31", "4", "▲ rising"] in table
        assert wrong == []


@pytest.fixture
def hundred(brokered: Page) -> Page:
    """A hundred events that come first, in tens of the same words."""
    words = (
        "nausea",
        "vomiting",
        "sleepless",
        "a headache",
        "dizzy",
        "hives",
        "<b>ill</b>",
        "sick",
        "a rash",
        "weak",
    )
    made = []
    for i in range(100):
        said = words[i // 10]
        found = replace(event(), score=0.1 + i / 1000)
        made.append(
            report(
                f"h{i:02}", 100 + i, found, text=f"{said} since day {i} of sertraline",
                mentions=(Mention(0, len(said), said, "ADE", 0.9),), record_id=f"posts/h{i:02}/h{i}/n@1",
            )
        )  # fmt: skip
    fill(Path(brokered.settings.database), made)
    return brokered


async def test_a_hundred_events_by_keyboard_and_by_two_people_at_once(hundred: Page) -> None:
    settings = hundred.settings.model_copy(update={"web_user_header": "X-User", "web_reviewers": "ann,bob"})
    async with chromium(Page(settings)) as (view, base, wrong):
        await view.context.set_extra_http_headers({"X-User": "ann"})
        await view.goto(f"{base}/review")
        began = time.monotonic()
        # One after the other, and the rest of their words together.
        for key in "araracaaan":
            await press(view, key) if key != "n" else await view.keyboard.press(key)
        await press(view, "c")
        alone = (time.monotonic() - began) / 10
        began = time.monotonic()
        for _ in range(8):
            await press(view, "m")
            assert await view.locator("[name=event]:checked").count() == 10
            await press(view, "a")
        together = (time.monotonic() - began) / 80
        print(f"{alone:.2f} s an event alone, {together:.2f} s together")
        other = await (
            await view.context.browser.new_context(extra_http_headers={"X-User": "bob"})
        ).new_page()
        other.on("pageerror", lambda error: wrong.append(str(error)))
        await other.goto(f"{base}/review")
        await view.goto(f"{base}/review")
        for _ in range(5):
            await asyncio.gather(press(view, "a"), press(other, "r"))
        assert "Today: 95 by you" in await view.locator("#day").inner_text()
        assert "Today: 5 by you (reject 5), 100 by all" in await other.locator("#day").inner_text()
        # The eighty are eight steps, behind the five; an undo takes a whole one back.
        for _ in range(6):
            await press(view, "u")
        assert "Today: 80 by you" in await view.locator("#day").inner_text()
        assert wrong == []
    reviews = await chain(hundred.settings)
    kinds = [(review.reviewer, review.action) for review in reviews]
    assert (kinds.count(("ann", "undo")), kinds.count(("bob", "reject")), len(reviews)) == (15, 5, 115)
    assert len({review.report_id for review in reviews if review.action != "undo"}) == 100
