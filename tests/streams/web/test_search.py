"""Search over reports, and its file."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from models.case_fields.fields import case_fields
from models.types import Mention
from tests.streams.store.messages import event, report
from tests.streams.web.conftest import HOSTILE, Page, fill
from tests.streams.web.test_review import follow
from tests.streams.web.test_second import reviewers

R = {f"r{i}" for i in range(2, 6)}
FIRST_TWO = {f'r{i}"><script>' for i in range(2)}
ALL = R | FIRST_TWO | {"two", "old", "none"}
OLD = datetime(2020, 2, 29, 23, 59, tzinfo=UTC)


@pytest.fixture
def stored(stored: Page) -> Page:
    first = event("lithium", "Insomnia", negated=True)
    second = event('100%_\\"', None, serious=True)
    formula = Mention(0, 4, "=1+1", "ADE", 1)
    made = [
        report("two", 30, first, second, text="It's \U0001f92e 100% \\ \u00c4rger", source="=forum"),
        report("old", 31, event("Lithium"), text="=1+1", created_at=OLD, mentions=(formula,)),
        report("none", 32, text="nothing at all"),
    ]
    fill(Path(stored.settings.database), made)
    return stored


CASES: list[tuple[dict[str, str], set[str]]] = [
    ({}, ALL), ({"text": "FELT SICK"}, R | FIRST_TWO), ({"text": HOSTILE}, FIRST_TWO),
    ({"text": " sick 3 "}, {"r3"}),
    ({"text": "it\'s"}, {"two"}), ({"text": "100% \\"}, {"two"}), ({"text": "1__"}, set()),
    ({"text": "\u00e4RGER"}, {"two"}),
    ({"text": "%"}, {"two"}), ({"text": "\' OR 1=1 --"}, set()), ({"text": "nothing"}, {"none"}),
    ({"text": "\U0001f92e"}, {"two"}),
    ({"drug": "lith"}, {"two", "old"}), ({"drug": '100%_\\"'}, {"two"}),
    ({"drug": "sertraline"}, R | {'r1"><script>'}),
    ({"term": "psychiatric"}, {"two"}), ({"term": "nausea"}, R | FIRST_TWO | {"old"}),
    ({"drug": "lith", "term": "nausea"}, {"old"}),
    ({"flag": "nil"}, {"two"}), ({"flag": "negated"}, {"two"}), ({"flag": "negated", "drug": "100"}, set()),
    ({"flag": "serious", "drug": "100"}, {"two"}), ({"flag": "hypothetical"}, set()),
    ({"source": "=forum"}, {"two"}), ({"source": "forum"}, set()),
    ({"state": "undecided"}, ALL - {"none"}), ({"state": "accept"}, set()),
    ({"until": "2020-02-29"}, {"old"}), ({"until": "2020-02-28"}, set()),
    ({"since": "2020-02-29", "until": "2020-02-29"}, {"old"}),
    ({"since": "2020-03-01"}, ALL - {"old"}), ({"until": "9999-12-30"}, ALL),
    # What cannot be is no condition.
    *(({name: value}, ALL) for name, value in (
        ("until", "9999-12-31"), ("since", "x"), ("since", "2021-02-29"), ("flag", "1=1"),
        ("state", "\'"), ("start", "-1"), ("nothing", "x"), ("start", "9" * 30),
    )),
]  # fmt: skip


async def test_reports_are_found_by_what_they_have(stored: Page) -> None:
    async with stored.served() as browser:
        client = browser()
        for query, expected in CASES:
            answer = await client.get("/search", params=query)
            html = await answer.text()
            found = re.findall(r'<a href="/report\?id=[^"]+">([^<]+)</a>', html)
            assert answer.status == 200 and {unescape(one) for one in found} == expected, query
            assert f"<p>{len(expected)} report" in html
            answer = await client.get("/search", params=query | {"format": "csv"})
            lines = list(csv.reader((await answer.text()).splitlines()))
            assert {line[0] for line in lines[1:]} == expected - {"none"}, query


async def test_a_file_has_no_formula_and_pages_follow_each_other(
    stored: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.web.search.SHOWN", 4)
    async with stored.served() as browser:
        client = browser()
        answer = await client.get("/search?drug=lith&format=csv")
        assert answer.content_type == "text/csv" and "attachment" in answer.headers["Content-Disposition"]
        by_id = {line["report_id"]: line for line in csv.DictReader((await answer.text()).splitlines())}
        assert by_id["old"]["words"] == "'=1+1" and by_id["two"]["source"] == "'=forum"
        assert by_id["two"]["negated"] == "True" and by_id["two"]["drugs"] == "lithium"
        seen, address = [], "/search?state=undecided"
        while address:
            html = await (await client.get(address)).text()
            seen += re.findall(r'<a href="/report\?id=([^"]+)">', html)
            more = re.findall(r'<a href="([^"]+)" data-key="n">More', html)
            address = unescape(more[0]) if more else ""
        assert len(seen) == len(set(seen)) == len(ALL - {"none"})


async def test_the_most_complete_of_the_latest_reports_come_first(
    stored: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "I am a 34 year old woman on 50 mg."
    told = report("told", 33, event(), text=text, created_at=OLD, case_fields=case_fields(text, ()))
    fill(Path(stored.settings.database), [told])
    async with stored.served() as browser:
        client = browser()
        for most, end, first in ((500, "", "told"), (9, "; the most complete of the latest 9", "two")):
            monkeypatch.setattr("streams.web.search.SORTED", most)
            html = await (await client.get("/search?sort=completeness")).text()
            found = re.findall(r">([^<]+)</a>[^<]*<time>[^<]*</time>(?: · completeness ([\d.]+))?", html)
            assert found[0][0] == first and f"<p>10 reports{end}" in html
            scores = [float(score or 0) for _, score in found]
            assert len(scores) == min(10, most) and scores == sorted(scores, reverse=True)
            assert found[-1] == ("none", ""), "without an event there is no case"
        monkeypatch.setattr("streams.web.search.SHOWN", 4)
        html = await (await client.get("/search?sort=completeness&start=4")).text()
        assert ", 5 to 8 follow" in html
        assert "/search?sort=completeness&amp;start=8" in html
        html = await (await client.get("/search?sort=completeness&start=8")).text()
        assert html.count("<article>") == 1 and 'data-key="n">More' not in html
        assert ">told</a>" in await (await client.get("/search?until=2020-03-01&drug=sert")).text()


async def test_texts_that_are_switched_off_cannot_be_searched(stored: Page) -> None:
    async with stored.served(web_texts=False) as browser:
        client = browser()
        html = await (await client.get("/search?text=no+such+words")).text()
        assert f"<p>{len(ALL)} reports" in html and 'name="text"' not in html and "felt sick" not in html
        answer = await client.get("/search?text=no+such+words&format=csv")
        assert "Nausea" in (lines := await answer.text()) and "felt sick" not in lines


async def test_decided_events_are_found_by_their_state(brokered: Page) -> None:
    async with reviewers(brokered) as (ann, _, _):
        for action in ("accept", "reject"):
            await ann.decide("uncertainty", {"action": action})
        await follow(brokered.settings)
        for state, count in (("accept", 1), ("reject", 1), ("correct", 0), ("undecided", 6)):
            address = f"/search?{urlencode({'state': state})}"
            html = await (await ann.client.get(address, headers={"X-User": "ann"})).text()
            assert f"<p>{count} report" in html, state
