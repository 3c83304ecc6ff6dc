"""The form of the queue: the event that it marks, its nearest terms, and what it keeps when it is refused."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from tests.streams.web.conftest import Client, Page, crowded, fill
from tests.streams.web.test_review import fields, follow
from tests.streams.web.test_second import reviewers


async def shown(client: Client, path: str = "/review") -> str:
    answer = await client.get(path)
    assert answer.status == 200
    return await answer.text()


def waiting(html: str) -> int:
    return int(re.findall(r"(\d+) events? waits?<", html)[0])


async def test_the_event_under_review_is_marked_and_its_nearest_terms_have_keys(brokered: Page) -> None:
    report = crowded()
    fill(Path(brokered.settings.database), [report])
    async with brokered.served() as browser:
        html = await shown(browser())
    form = fields(html)
    mention = report.mentions[7]  # of the lowest cosine
    assert (form["report"], int(form["start"])) == (report.id, mention.start)
    text = html[html.index("<article>") : html.index("</article>")]
    assert text.count("<mark") == 14 and text.count('aria-current="true"') == 1
    before, _, after = text.partition('<mark class="ade current" aria-current="true">felt sick</mark>')
    assert before.count("<mark") == 7
    assert after.startswith('<small class="note">Nausea</small><small class="note current">under review<')
    assert "Event 8 of 14 in this report" in html
    (listed,) = re.findall(r'<li class="current" aria-current="true">.*?</li>', html, re.DOTALL)
    assert "under review" in listed and html.count("<li>") == 13
    assert "#event-7" in html
    found = re.findall(r'data-choose="([^"]+)" data-key="(\d)".*?<small>([\d.]+)</small>', html)
    assert [(key, cosine) for _, key, cosine in found] == [
        ("1", "0.620"), ("2", "0.600"), ("3", "0.580"), ("4", "0.500"), ("5", "0.400"),
    ]  # fmt: skip
    assert [llt for llt, *_ in found[:3]] == ["Feeling sick", "Sleepless", "Depersonalisation"]


TYPED = {
    "term": "Sleepless", "negated": "on", "span_start": "25", "span_end": "29", "drugs": "lithium",
    "reason": 'reads <so> & "so"', "action": "correct",
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("term", "no such <term>", "The terminology has no such term"),
        ("span_start", "x", "A whole number is needed"),
        ("span_end", "999", "The span must be within the text, which has 31 characters"),
        ("drugs", "lithium, felt sick", "The lexicon has no drug “felt sick”"),
    ],
)
@pytest.mark.parametrize("order", ["uncertainty", "second"])
async def test_what_cannot_be_saved_keeps_the_form_and_says_so_at_its_field(
    brokered: Page, order: str, field: str, value: str, says: str
) -> None:
    async with reviewers(brokered) as (ann, bob, _):
        await ann.decide("uncertainty", {"action": "correct", "term": "Sleepless"})
        form = await bob.given(order)
        typed = form | TYPED | {field: value}
        answer = await bob.client.post("/review", data=typed, headers={"X-User": "bob"})
        html = await answer.text()
        assert answer.status == 400 and fields(html) == form
        for name in TYPED.keys() - {"negated", "action"}:
            (kept,) = re.findall(rf'name="{name}"[^>]*value="([^"]*)"', html)
            assert unescape(kept) == typed[name], name
        assert 'data-key="n" checked' in html and 'data-key="h" checked' not in html
        (tag,) = re.findall(r"<input[^>]*aria-invalid[^>]*>", html)
        assert f'name="{field}"' in tag and 'aria-describedby="error" autofocus' in tag
        (problem,) = re.findall(r'<p class="bad" id="error" role="alert">([^<]+)</p>', html)
        assert says in unescape(problem)
        again = fields(html) | TYPED | {"action": "correct"}
        assert await bob.send("/review", again) == 303


async def test_a_decision_is_counted_at_once_and_not_again_when_the_store_has_it(brokered: Page) -> None:
    async with reviewers(brokered) as (ann, bob, _):

        async def counts() -> tuple[int, int]:
            """Events that wait, and those that are reviewed."""
            overview = await (await ann.client.get("/", headers={"X-User": "ann"})).text()
            reviewed = re.findall(r"Events reviewed</dt><dd>(\d+)<", overview)
            return waiting(await ann.html("uncertainty")), int(reviewed[0])

        assert await counts() == (6, 0)
        assert await ann.decide("uncertainty", {"action": "accept"}) == 303
        assert await counts() == (5, 1)
        assert await bob.decide("second", {"action": "reject"}) == 303  # decides nothing
        assert await counts() == (5, 1)
        await follow(brokered.settings)
        assert await counts() == (5, 1)
        for applied in (False, True):  # before the undo
            assert await ann.decide("uncertainty", {"action": "reject"}) == 303
            assert await counts() == (4, 2)
            if applied:
                await follow(brokered.settings)
                assert await counts() == (4, 2)
            assert await ann.undo() == 303
            assert await counts() == (5, 1)
        await follow(brokered.settings)
        assert await counts() == (5, 1)


async def test_nobody_is_offered_the_own_dispute(brokered: Page) -> None:
    async with reviewers(brokered) as (ann, bob, cy):
        await ann.decide("uncertainty", {"action": "accept"})
        await bob.decide("second", {"action": "reject"})
        form = await cy.given("disputed")
        for reader in (ann, bob):
            html = await reader.html("disputed")
            assert waiting(html) == 0 and "No event waits for you" in html
            assert "No event waits for you" in await reader.html("second")
        skipped = form | {"action": "skip"}
        assert await cy.send("/review", skipped) == 303
        # Nor does a form of their own making decide it.
        place = {name: form[name] for name in ("report", "start", "end", "fingerprint")}
        mine = await ann.given("uncertainty") | place
        assert await ann.send("/review", mine | {"order": "disputed", "action": "first"}) == 409


async def test_a_second_reader_sees_no_event_of_the_report_as_decided(brokered: Page) -> None:
    fill(Path(brokered.settings.database), [crowded(3)])
    async with reviewers(brokered) as (ann, bob, _):
        for _ in range(3):
            await ann.decide("uncertainty", {"action": "reject"})
        await follow(brokered.settings)
        form = await bob.given("second")
        assert form["report"].startswith("crowded")
        assert "rejected" not in await bob.html("second")
