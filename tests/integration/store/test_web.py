"""The page in a real Chromium."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from aiokafka import AIOKafkaProducer

from streams.codec import encode
from streams.records import CodedReport
from streams.store.decisions import fingerprint
from streams.web.app import application, start
from tests.integration.store.axe import AxeUnavailable, axe_source
from tests.streams.web.conftest import TERMS, Page, brokered, crowded, fill, reports, stored
from tests.streams.web.test_review import chain
from tests.streams.web.test_views import PAGES

__all__ = ["brokered", "stored"]
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; Debian has it as a package"),
]
MILLISECONDS = 60_000
WIDTH = 360
REVIEWS = tuple(f"/review?order={order}" for order in ("uncertainty", "seriousness", "second", "disputed"))
MISSING = ("/report?id=nobody", "/case?id=nobody", "/nowhere")
#: Words in cells of tables that are in more than one line; a hyphen or a slash may end one, and those that
#: are wider than a telephone must break.
BROKEN_WORDS = """() => {
  const broken = [];
  for (const cell of document.querySelectorAll("td, th")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/[^\\s/-]+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (word[0].length < 40 && range.getClientRects().length > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""
#: Findings of axe-core, of every impact.
FINDINGS = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  const places = (one) => one.nodes.map((node) => node.target.join(" ")).join(", ");
  return found.violations.map((one) => `${one.id}: ${places(one)}`);
}"""


def same_words(report: CodedReport) -> str:
    """The address of what is like the first event of a report."""
    first = report.mentions[report.events[0].mention]
    where = {"report": report.id, "start": first.start, "end": first.end}
    return f"/review/same?{urlencode(where | {'fingerprint': fingerprint(report.record_id)})}"


@asynccontextmanager
async def chromium(page: Page) -> AsyncIterator[tuple[Any, str, list[str]]]:
    """A browser, the address of the page, and what went wrong or elsewhere so far."""
    playwright_api = pytest.importorskip("playwright.async_api")
    settings = page.settings.model_copy(update={"web_port": 0})
    runner, port = await start(application(settings, TERMS))
    base = f"http://127.0.0.1:{port}"
    wrong: list[str] = []
    try:
        async with playwright_api.async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            context = await browser.new_context(viewport={"width": WIDTH, "height": 740})
            context.set_default_timeout(MILLISECONDS)
            view = await context.new_page()
            view.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
            view.on("pageerror", lambda error: wrong.append(str(error)))
            view.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
            view.on("request", lambda r: None if r.url.startswith(base) else wrong.append(r.url))
            yield view, base, wrong
            await browser.close()
    finally:
        await runner.cleanup()


async def test_views_run_no_hostile_text_ask_no_other_host_and_fit_a_small_screen(brokered: Page) -> None:
    report = crowded()
    words = [report] + [replace(report, id=f"like{i}", record_id=f"posts/like{i}/c/n@1") for i in range(3)]
    fill(Path(brokered.settings.database), words)
    async with chromium(brokered) as (view, base, wrong):
        for path in (*PAGES, "/login", f"/report?id={report.id}", *REVIEWS, same_words(report), *MISSING):
            await view.goto(base + path)
            assert await view.evaluate("document.documentElement.scrollWidth") <= WIDTH, path
            assert await view.evaluate(BROKEN_WORDS) == [], path
        assert [one for one in wrong if "404" not in one] == []
        assert await view.locator("nav a[href='/review']").is_visible()


async def test_a_report_that_arrives_appears_without_a_reload(brokered: Page) -> None:
    async with chromium(brokered) as (view, base, wrong):
        await view.goto(base)
        record = encode(reports(1)[0])
        before = await view.locator("#live article").count()
        async with AIOKafkaProducer(**brokered.settings.client()) as producer, asyncio.timeout(60):
            while await view.locator("#live article").count() <= before:
                await producer.send_and_wait("events", record, key=b"r0")
                await asyncio.sleep(0.2)
        assert wrong == []


async def test_the_queue_is_worked_through_by_keyboard_alone(brokered: Page) -> None:
    async with chromium(brokered) as (view, base, wrong):
        await view.goto(f"{base}/review")
        for key in ("a", "r"):
            await press(view, key)
        words = view.locator("q.words")
        for key, shown in (("v", "felt"), ("b", "felt sick"), ("k", "sick")):
            await view.keyboard.press(key)
            assert await words.text_content() == shown
        await view.keyboard.press("d")
        await view.keyboard.type("lithium")
        await view.keyboard.press("Escape")
        await view.keyboard.press("n")
        await view.keyboard.press("t")
        await view.keyboard.type("slee")
        await view.wait_for_selector('#terms option[value="Sleepless"]', state="attached")
        await view.keyboard.type("pless")
        await view.keyboard.press("Escape")
        await press(view, "c")
        await press(view, "u")
        assert wrong == []
    reviews = await chain(brokered.settings)
    assert [review.action for review in reviews] == ["accept", "reject", "correct", "undo"]
    corrected = reviews[2].after
    assert (corrected.pt, corrected.negated) == ("Insomnia", True)
    assert (corrected.start, corrected.end, corrected.drugs) == (25, 29, ("lithium",))
    assert reviews[3].after == reviews[2].before


async def press(view: Any, key: str) -> None:
    """A shortcut that sends a form."""
    async with view.expect_navigation():
        await view.keyboard.press(key)


async def test_axe_core_finds_nothing_on_any_page(brokered: Page) -> None:
    try:
        axe = axe_source()
    except AxeUnavailable as reason:
        pytest.skip(str(reason))
    changes = {"web_user_header": "X-User", "web_reviewers": "ann,bob,cy"}
    page = Page(brokered.settings.model_copy(update=changes))
    async with chromium(page) as (view, base, wrong):
        for name, order, key in (("ann", "uncertainty", "a"), ("bob", "second", "r")):
            await view.context.set_extra_http_headers({"X-User": name})
            await view.goto(f"{base}/review?order={order}")
            await press(view, key)
        await view.context.set_extra_http_headers({"X-User": "cy"})
        paths = (*PAGES, *REVIEWS, same_words(reports()[5]), "/report?id=r5", "/login", *MISSING)
        for scheme in ("light", "dark"):
            await view.emulate_media(color_scheme=scheme)
            for path in paths:
                await view.goto(base + path)
                await view.evaluate(axe)
                assert await view.evaluate(FINDINGS) == [], (scheme, path)
            await view.keyboard.press("?")
            assert await view.locator("dialog").is_visible()
            assert await view.evaluate(FINDINGS) == [], scheme
            await view.keyboard.press("Escape")
        await view.evaluate("document.documentElement.removeAttribute('lang')")
        assert await view.evaluate(FINDINGS) == ["html-has-lang: html"]  # so it does look
        assert [one for one in wrong if "404" not in one] == []
