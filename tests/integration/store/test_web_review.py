"""The form of the queue in a real Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.store.test_web import CHROMIUM, chromium, press
from tests.streams.web.conftest import Page, brokered, crowded, fill, stored
from tests.streams.web.test_review import chain

__all__ = ["brokered", "stored"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; Debian has it as a package"),
]
#: Whether the marked event can be seen at once, and what its outline looks like beside another mark's.
MARK = """() => {
  const [mark] = document.querySelectorAll("mark.current");
  const [box, frame] = [mark, mark.closest(".reading")].map((one) => one.getBoundingClientRect());
  const style = (one) => [getComputedStyle(one).outlineStyle, getComputedStyle(one).fontWeight];
  return {
    seen: box.top >= frame.top && box.bottom <= frame.bottom && box.top >= 0 && box.bottom <= innerHeight,
    scrolled: mark.closest(".reading").scrollTop > 0 && scrollY === 0,
    mark: style(mark), other: style(document.querySelector("mark:not(.current)")),
    color: getComputedStyle(mark).backgroundColor ===
      getComputedStyle(document.querySelector("mark:not(.current)")).backgroundColor,
  };
}"""


@pytest.fixture
def crowd(brokered: Page) -> Page:
    """A report of 14 events comes first."""
    fill(Path(brokered.settings.database), [crowded()])
    return brokered


async def test_the_event_under_review_is_seen_at_once_and_not_by_its_colour_alone(crowd: Page) -> None:
    async with chromium(crowd) as (view, base, wrong):
        await view.goto(f"{base}/review")
        found = await view.evaluate(MARK)
        assert found["seen"] and found["scrolled"] and found["color"], found
        assert (found["mark"], found["other"]) == (["solid", "700"], ["none", "400"])
        assert await view.locator(".text .note.current").text_content() == "under review"
        await view.get_by_text("Event 8 of 14 in this report").click()
        assert await view.locator(".codes [aria-current]").count() == 1
        await view.get_by_text("The whole report").click()
        await view.wait_for_url("**/report?id=*#event-7")
        assert await view.locator("#event-7").evaluate("(one) => one.matches(':target')")
        assert wrong == []


async def test_digits_choose_the_nearest_terms_but_not_while_a_field_is_filled(crowd: Page) -> None:
    async with chromium(crowd) as (view, base, wrong):
        await view.goto(f"{base}/review")
        term, chosen = view.locator('[name="term"]'), view.locator(".choices [aria-pressed=true]")
        assert await view.locator(".choices button").count() == 5
        for key, llt in (("3", "Depersonalisation"), ("5", "Malaise"), ("2", "Sleepless")):
            await view.keyboard.press(key)
            assert await term.input_value() == llt
            assert llt in await chosen.inner_text()
        await view.keyboard.press("6")
        await view.keyboard.press("e")
        await view.keyboard.type("1 of 3")
        assert await view.locator('[name="reason"]').input_value() == "1 of 3"
        assert await term.input_value() == "Sleepless"
        await view.keyboard.press("Escape")
        await view.keyboard.press("t")
        await view.keyboard.type("1")
        assert await term.input_value() == "1" and await chosen.count() == 0
        await view.keyboard.press("Escape")
        await view.locator(".choices button").nth(1).click()
        await press(view, "c")
        assert wrong == []
    (review,) = await chain(crowd.settings)
    assert (review.action, review.after.llt, review.reason) == ("correct", "Sleepless", "1 of 3")
