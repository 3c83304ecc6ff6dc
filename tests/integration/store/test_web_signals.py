"""A safety officer's morning in a real Chromium: new signals, evidence, a decision and its file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from streams.signals.lists import LABELS_FILE
from tests.integration.store.test_web import CHROMIUM, WIDTH, chromium
from tests.streams.web.conftest import Page, brokered, fill, stored
from tests.streams.web.test_signal_columns import keep, made
from tests.streams.web.test_signal_states import decided

__all__ = ["brokered", "stored"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; Debian has it as a package"),
]


async def test_from_the_new_signals_of_the_week_to_a_decision_and_its_file(brokered: Page) -> None:
    fill(Path(brokered.settings.database), made())
    keep(LABELS_FILE, {"lithium": ["Insomnia"]})
    async with chromium(brokered) as (view, base, wrong):
        await view.goto(f"{base}/signals")
        await view.get_by_label("Only").select_option("new in 7 days")
        await view.get_by_role("button", name="Show").click()
        row = view.get_by_role("row").filter(has_text="lithium")
        assert "unlisted" in await row.inner_text() and await row.locator("svg").count() == 2
        await row.get_by_role("link", name="Rash").click()
        assert await view.locator("article").count() == 5
        await view.get_by_label("State").select_option("confirmed")
        await view.get_by_label("Owner").fill("ann")
        await view.get_by_label("Due").fill("2026-12-31")
        await view.get_by_role("button", name="Save").click()
        assert "needs a reason" in await view.get_by_role("alert").inner_text()
        await view.get_by_label("Reason").fill("five reports in a day")
        await view.get_by_role("button", name="Save").click()
        await view.get_by_role("heading", name="State: confirmed, ann, due 2026-12-31").wait_for()
        assert await view.evaluate("document.documentElement.scrollWidth") <= WIDTH
        async with view.expect_download() as waiting:
            await view.get_by_role("link", name="The signal as JSON").click()
        file = json.loads(await asyncio.to_thread(Path(await (await waiting.value).path()).read_bytes))
        assert (file["listed"], file["decisions"][0]["reason"]) == ("no", "five reports in a day")
        assert len(file["reports"]) == 5
        await view.goto(f"{base}/signals?state=confirmed")
        assert await view.get_by_role("row").count() == 2, "the head and the signal"
        assert [one for one in wrong if "400" not in one] == []
    (made_one,) = await decided(brokered.settings)
    assert (made_one.drug, made_one.term, made_one.after.state) == ("lithium", "Rash", "confirmed")
