"""States of signals on the page: decisions, conflicts, filters, and what opens a signal again."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import date
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from streams.records import SignalDecision
from streams.reviews.log import ReviewLog
from streams.settings import Settings
from streams.signals.states import standings
from streams.store.decisions import signal_decisions
from streams.store.open_database import open_database
from tests.streams.store.messages import event, report
from tests.streams.store.test_signal_decisions import on_signal
from tests.streams.test_codec import SIGNAL
from tests.streams.web.conftest import Client, Page, fill
from tests.streams.web.test_review import follow, sent

PAIR = {"drug": "sertraline", "term": "Nausea"}
DUE = "2026-04-01"
CLOSED = {"state": "closed", "owner": "bob", "due": DUE, "reason": "listed"}


async def form(client: Client, **pair: str) -> dict[str, str]:
    """The hidden fields of the form of a signal."""
    html = await shown(client, "/pair", **(PAIR | pair))
    part = html[html.index('action="/review/signal"') :]
    return {n: unescape(v) for n, v in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', part)}


async def shown(client: Client, path: str, **query: str) -> str:
    answer = await client.get(path, params=query)
    assert answer.status == 200
    return await answer.text()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


async def decided(settings: Settings) -> list[SignalDecision]:
    log = ReviewLog(settings)
    await log.start()
    await log.stop()
    return log.signals


async def test_of_two_people_the_second_sees_the_decision_of_the_first(
    brokered: Page, tmp_path: Path
) -> None:
    """Of two pages that share nothing but the broker and the store."""
    async with brokered.served() as browser, brokered.served(state=tmp_path / "other") as of_another:
        one, two = browser(), of_another()
        forms = [await form(one), await form(two)]
        posts = zip((one, two), forms, strict=True)
        sending = [sent(client, "/review/signal", made | CLOSED) for client, made in posts]
        assert sorted(await asyncio.gather(*sending)) == [303, 409]
        assert await sent(one, "/review/signal", forms[0] | CLOSED) == 409, "the same form again"
        assert await sent(two, "/review/signal", forms[1] | CLOSED) == 409
        html = await shown(two, "/pair", **PAIR)
        assert "State: closed, bob, due 2026-04-01" in html and "“listed”" in html
        again = await form(two)
        assert await sent(two, "/review/signal", again | {"state": "monitored"}) == 400, "without a reason"
        assert await sent(two, "/review/signal", again | CLOSED | {"due": "soon"}) == 400
        assert await sent(two, "/review/signal", again | CLOSED | {"state": "done"}) == 400
        assert await sent(two, "/review/signal", again | CLOSED | {"term": "no such"}) == 404
        assert await sent(two, "/review/signal", again | CLOSED | {"owner": "cy", "reason": ""}) == 303
    first, last = await decided(brokered.settings)
    assert (first.before.state, first.after.state, first.after.owner) == ("new", "closed", "bob")
    assert (last.before, last.after.owner, last.after.due) == (first.after, "cy", date(2026, 4, 1))
    assert first.reports == 5 and first.ic025 is not None and first.eb05 is not None


async def test_the_table_filters_and_counts_by_state_also_from_the_store_alone(brokered: Page) -> None:
    settings = brokered.settings
    made = [report(f"i{n}", 60 + n, event(pt="Insomnia")) for n in range(3)]
    fill(Path(settings.database), made)
    async with brokered.served() as browser:
        client = browser()
        assert "new 2" in words(await shown(client, "/signals"))
        assert await sent(client, "/review/signal", await form(client) | CLOSED) == 303
        await follow(settings)
        filled = await shown(client, "/signals")
    async with Page(settings.model_copy(update={"broker": Settings().broker})).served() as browser:
        client = browser()
        for html in (filled, await shown(client, "/signals", sort="due")):
            assert "new 1 · closed 1" in words(html) and "due 2026-04-01" in html
            assert "with 3 more unique reports than at the decision" in html, "the rule"
        assert rows(await shown(client, "/signals", state="closed")) == ["Nausea"]
        assert rows(await shown(client, "/signals", state="new")) == ["Insomnia"]
        assert rows(await shown(client, "/signals", owner="bob")) == ["Nausea"]
        assert rows(await shown(client, "/signals", sort="due")) == ["Nausea", "Insomnia"]
        html = await shown(client, "/pair", **PAIR)
        assert "State: closed, bob" in html and "<button>Save" not in html


def rows(html: str) -> list[str]:
    """The terms of the table."""
    return re.findall(r'<a href="/pair\?drug=sertraline&amp;term=(\w+)', html)


@pytest.mark.parametrize(("more", "expected"), [(2, "closed"), (3, "new")])
async def test_a_closed_signal_is_new_again_with_more_reports_and_the_chain_says_so_once(
    brokered: Page, tmp_path: Path, more: int, expected: str
) -> None:
    async with brokered.served() as browser:
        client = browser()
        assert await sent(client, "/review/signal", await form(client) | CLOSED) == 303
    await follow(brokered.settings)
    fill(Path(brokered.settings.database), [report(f"m{i}", 70 + i, event()) for i in range(more)])
    async with brokered.served() as browser, brokered.served(state=tmp_path / "other") as of_another:
        client = browser()
        if expected == "new":
            for one in (client, of_another()):
                await written(one, brokered.settings)
        html = await shown(client, "/pair", **PAIR)
        assert f"State: {expected}, bob" in html
        assert (f"was closed and is new again: {more} more reports" in html) is (expected == "new")
        assert f"{expected} 1" in words(await shown(client, "/signals"))
        if expected == "new":
            again = await form(client) | CLOSED
            assert await sent(client, "/review/signal", again) == 303
            assert "State: closed" in await shown(client, "/pair", **PAIR)
    made = await decided(brokered.settings)
    found = [(one.reviewer, one.before.state, one.after.state, one.reason, one.reports) for one in made[1:]]
    opened, closed = ("", "closed", "new", "3 more reports", 8), ("local", "new", "closed", "listed", 8)
    assert found == ([opened, closed] if expected == "new" else [])


async def written(client: Client, settings: Settings) -> None:
    """Waits until the page has the signal and the chain that it is new again."""
    await shown(client, "/signals")
    for _ in range(600):
        if len(await decided(settings)) > 1:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("nothing is written")


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ((1.99, 0.5), "EB05 is 2.00"),
        ((None, 0.5), "EB05 is 2.00"),
        ((2.0, 0.0), "IC025 is 0.01"),
        ((2.0, None), "IC025 is 0.01"),
        ((1.99, -1.0), "EB05 is 2.00; IC025 is 0.01"),
        ((2.0, 0.001), ""),
    ],
)
def test_a_closed_signal_is_new_again_when_a_limit_passes_its_bound(
    then: tuple[float | None, float | None], expected: str
) -> None:
    def state(eb05: float, ic025: float, closed: str = "closed") -> tuple[str | None, str]:
        made = on_signal(0, closed, reports=SIGNAL.windows["all"].n, eb05=then[0], ic025=then[1])
        s = SIGNAL.windows["all"]
        limits = replace(s, ebgm=replace(s.ebgm, low=eb05), ic=replace(s.ic, low=ic025))
        now = replace(SIGNAL, drug=made.drug, term=made.term, windows={"all": limits})
        (standing,) = standings([made], [now]).values()
        return standing.state, standing.reopened

    assert state(2.0, 0.01) == ("new" if expected else "closed", expected)
    assert state(1.99, 0.0) == ("closed", ""), "at the bounds"
    assert state(2.0, 0.01, "monitored") == ("monitored", ""), "the work on it goes on"


def test_what_was_opened_again_stays_open_when_the_numbers_fall_until_somebody_decides() -> None:
    closed = on_signal(0, "closed", reports=5)
    opened = on_signal(1, "new", reviewer="", reason="3 more reports", reports=8)
    (standing,) = standings([closed, opened], []).values()
    assert (standing.state, standing.reopened) == ("new", "3 more reports")
    (standing,) = standings([closed, opened, on_signal(2, "refuted")], []).values()
    assert (standing.state, standing.reopened) == ("refuted", "")


async def test_who_may_read_only_cannot_decide(brokered: Page) -> None:
    changes: dict[str, Any] = {"web_user_header": "X-User", "web_reviewers": "ann"}
    async with brokered.served(**changes) as browser:
        client = browser()
        made: dict[str, str] = {}
        for name in ("ann", "eve"):
            client.session.headers["X-User"] = name
            html = await shown(client, "/pair", **PAIR)
            assert ("<button>Save" in html) is (name == "ann")
            made |= await form(client) if name == "ann" else {}
        assert await sent(client, "/review/signal", made | CLOSED) == 403
    database = open_database(brokered.settings)
    assert signal_decisions(database) == []
    database.close()
