"""The form of the queue in a real Chromium."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.types import Mention
from tests.integration.store.test_web import CHROMIUM, chromium, press
from tests.streams.store.messages import event, report
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


TEXT = (
    "\U0001f600\U0001f600 I took sertraline,\r\nand felt sick. "
    "\U0001f92e Then I couldn't sleep\r\nat <b>all</b>"
)
#: From and to where the mouse goes, and the words that are the span then; half a word is the whole one.
SELECTED = (
    ("felt", "sick", "felt sick"), ("elt", "Then", "felt sick. \U0001f92e Then"),
    ("Then", "ouldn", "Then I couldn't"), ("leep", "all", "sleep\r\nat <b>all"), ("I", "took", "I took"),
)  # fmt: skip
#: Where a word of the text is on the screen: the middle of its first or last letter.
PLACE = """([word, isEnd]) => {
  const walker = document.createTreeWalker(document.querySelector(".reading .text"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const at = walker.currentNode.data.indexOf(word);
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(walker.currentNode, isEnd ? at + word.length - 1 : at);
    range.setEnd(walker.currentNode, isEnd ? at + word.length : at + 1);
    const box = range.getBoundingClientRect();
    return [isEnd ? box.right - 1 : box.left + 1, (box.top + box.bottom) / 2];
  }
}"""


@pytest.fixture
def written(brokered: Page) -> Page:
    """A report of characters that browsers and Python count differently comes first."""
    at = TEXT.index("felt sick")
    found = report(
        "emoji", 70, replace(event(), score=0.1), text=TEXT, record_id="posts/emoji/e/normalization@1",
        mentions=(Mention(at, at + 9, "felt sick", "ADE", 0.9),),
    )  # fmt: skip
    fill(Path(brokered.settings.database), [found])
    return brokered


async def drag(view: Any, first: str, last: str) -> None:
    """Selects from the beginning of a word to the end of another one with the mouse."""
    await view.evaluate("getSelection().removeAllRanges()")  # which would be dragged away
    await view.mouse.move(*await view.evaluate(PLACE, [first, False]))
    await view.mouse.down()
    await view.mouse.move(*await view.evaluate(PLACE, [last, True]), steps=4)
    await view.mouse.up()


async def test_a_span_is_selected_with_the_mouse_or_with_shift_and_arrows(written: Page) -> None:
    async with chromium(written) as (view, base, wrong):
        await view.goto(f"{base}/review")
        words, numbers = view.locator("q.words"), view.locator('[name="span_start"], [name="span_end"]')
        assert await numbers.first.is_hidden() and await words.text_content() == "felt sick"

        async def chosen() -> str:
            """What the numbers of the form name, which the words shown must be."""
            start, end = [int(await numbers.nth(i).input_value()) for i in (0, 1)]
            assert await words.text_content() == TEXT[start:end]
            return TEXT[start:end]

        # Behind the mark stands its code, which is no part of the text.
        for first, last, expected in SELECTED:
            await drag(view, first, last)
            await words.filter(has_text=expected.replace("\r\n", " ")).wait_for()
            assert await chosen() == expected
        for keys, expected in (
            (["Shift+ArrowRight"], "I took sertraline"), (["Shift+ArrowLeft"] * 2, "I"),
            (["ArrowRight"] * 3, "and"), (["Shift+ArrowRight"] * 2, "and felt sick"),
            (["ArrowLeft", "Shift+ArrowLeft"], "and felt"), (["ArrowRight"] * 99, "b"),
            (["ArrowLeft"] * 3, "at"), (["Shift+ArrowLeft"] * 4, "Then I couldn't sleep\r\nat"),
            (["k", "v"], "I couldn't sleep"),
        ):  # fmt: skip
            for key in keys:
                await view.keyboard.press(key)
            assert await chosen() == expected, keys
        # In a field arrows are its own, and what is selected elsewhere is no span.
        await view.keyboard.press("e")
        await view.keyboard.press("Shift+ArrowLeft")
        await view.keyboard.press("Escape")
        await view.locator("h1").dblclick()
        assert await chosen() == "I couldn't sleep"
        await press(view, "c")
        assert wrong == []
    (review,) = await chain(written.settings)
    assert TEXT[review.after.start or 0 : review.after.end] == "I couldn't sleep"


async def typed(view: Any, key: str, code: str) -> None:
    """A key of a keyboard with other letters."""
    session = await view.context.new_cdp_session(view)
    for kind in ("keyDown", "keyUp"):
        await session.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code})
    await session.detach()


async def test_keys_work_with_caps_lock_and_on_keyboards_with_other_letters(crowd: Page) -> None:
    async with chromium(crowd) as (view, base, wrong):
        await view.goto(f"{base}/review")
        term = view.locator('[name="term"]')
        box = view.locator('[name="negated"]')
        for key, code, is_checked in (
            ("N", "KeyN", True), ("\u0442", "KeyN", False), ("n", "KeyL", True), ("\u03bd", "KeyN", False),
        ):  # fmt: skip
            await typed(view, key, code)  # Caps Lock, Russian, Dvorak, Greek
            assert await box.is_checked() == is_checked, key
        await typed(view, "\u00e9", "Digit2")  # the digits of AZERTY need Shift
        assert await term.input_value() == "Sleepless"
        for key in ("Shift+n", "Control+n", "Alt+n"):
            await view.keyboard.press(key)
        assert not await box.is_checked()
        await view.goto(f"{base}/review")
        async with view.expect_navigation():
            await typed(view, "\u0444", "KeyA")
        assert wrong == []
    assert [review.action for review in await chain(crowd.settings)] == ["accept"]


async def test_keys_are_listed_and_changed(crowd: Page) -> None:
    async with chromium(crowd) as (view, base, wrong):
        await view.goto(f"{base}/review")
        await view.keyboard.press("?")
        dialog = view.locator("dialog")
        listed = {await row.inner_text() for row in await dialog.locator(".keys label").all()}
        assert {"Accept", "Reject", "Sleepless 0.600", "negated"} <= {row.strip() for row in listed}
        accept, reject, skip = (
            dialog.get_by_label(name, exact=True) for name in ("Accept", "Reject", "Skip")
        )
        assert await accept.input_value() == "a"
        await accept.press("r")
        await skip.press("Backspace")
        assert [await one.input_value() for one in (accept, reject, skip)] == ["r", "a", ""]
        await view.keyboard.press("Escape")
        await view.reload()
        assert await view.locator("button[value=accept]").inner_text() == "Accept r"
        for key in ("s", "?"):
            await view.keyboard.press(key)
        await view.get_by_text("The usual keys").click()
        assert await accept.input_value() == "a"
        await accept.press("x")
        await view.keyboard.press("Escape")
        for key in ("a", "s", "x"):
            if key == "a":
                await view.keyboard.press(key)
            else:
                await press(view, key)
        assert wrong == []
    assert [review.action for review in await chain(crowd.settings)] == ["accept"]


async def test_a_drug_is_completed_behind_the_last_comma(crowd: Page) -> None:
    async with chromium(crowd) as (view, base, wrong):
        await view.goto(f"{base}/review")
        await view.locator('[name="drugs"]').fill("lithium, proza")
        option = view.locator("#drug-names option").first
        await option.wait_for(state="attached")
        assert await option.get_attribute("value") == "lithium, fluoxetine"
        assert wrong == []
