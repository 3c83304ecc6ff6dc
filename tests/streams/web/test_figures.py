"""Figures over days, terms, drugs and organ classes: their numbers, places and links."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from streams.records import CodedReport
from streams.settings import Settings
from streams.store.database import Database
from streams.store.open_database import open_database
from streams.web.figures import DAYS, HEIGHT, WIDTH, Day, by_day, charts, heat, releases, terms
from tests.streams.store.messages import event, report
from tests.streams.web.conftest import Page, fill

LAST = datetime(2026, 3, 31, 12, tzinfo=UTC)
END = LAST.date()


def made() -> list[CodedReport]:
    """Nausea rises with sertraline and insomnia falls with lithium; the last release began on the 20th."""
    found = []
    for i in range(40):
        rising = i < 30
        # Of nausea 26 in the last four weeks and 4 before, of insomnia 2 and 8.
        days = (i if i < 26 else 4 + i) if rising else (i - 30 if i < 32 else i - 4)
        drug, term = ("sertraline", "Nausea") if rising else ("lithium", "Insomnia")
        at = LAST - timedelta(days=days)
        one = replace(event(drug, term), score=0.5 if rising else 0.8)
        late = {"ner": "b" * 12} if days <= 11 else {"ner": "a" * 12}
        found.append(
            replace(report(f"f{i}", i, one, created_at=at, text=f"text {i}", releases=late), received_at=at)
        )
    quiet = report("quiet", 50, event(negated=True), created_at=LAST, text="quiet")
    nothing = report("nothing", 51, event("lithium", None), created_at=LAST, text="nothing")
    return [*found, *(replace(one, received_at=LAST, releases={"ner": "b" * 12}) for one in (quiet, nothing))]


@pytest.fixture
def full(tmp_path: Path) -> Page:
    path = tmp_path / "figures.duckdb"
    fill(path, made())
    return Page(Settings(database=str(path)))


@pytest.fixture
def database(full: Page) -> Database:
    return open_database(full.settings)


def test_each_day_has_its_reports_alarms_and_drift(database: Database) -> None:
    days = by_day(database, "", END)
    assert [days[0].day, days[-1].day, len(days)] == [END - timedelta(days=DAYS - 1), END, DAYS]
    score = days[-1].score
    assert score == pytest.approx((0.5 + 0.8 + 0.9 + 0.9) / 4)
    assert days[-1] == Day(END, reports=4, alarms=3, score=score, nil=1 / 4)
    assert days[-1].rate == 3 / 4 and days[0] == Day(days[0].day) and days[0].rate is None
    assert sum(day.reports for day in days) == 42
    of_drug = by_day(database, "lithium' OR 1=1", END)
    assert sum(day.reports for day in of_drug) == 0
    assert sum(day.reports for day in by_day(database, "lithium", END)) == 10
    (marked,) = releases(database, END - timedelta(days=20))
    assert (marked["day"], marked["releases"]) == (date(2026, 3, 20), {"ner": "b" * 12})
    assert len(releases(database, days[0].day)) == 2


def test_a_term_rises_or_falls_where_chance_does_not_explain_it(database: Database) -> None:
    found = [(row["pt"], row["now"], row["before"], row["rises"]) for row in terms(database, "", END)]
    assert found == [("Nausea", 26, 4, 1), ("Insomnia", 2, 8, 0)]
    assert [row["pt"] for row in terms(database, "lithium", END)] == ["Insomnia"]
    classes, drugs = heat(database)
    assert classes == ["Gastrointestinal disorders", "Psychiatric disorders"]
    assert drugs == [("sertraline", [(30, 5), (0, 0)]), ("lithium", [(0, 0), (10, 4)])]


def test_bars_and_lines_stay_in_their_box() -> None:
    days = [Day(END, 4, 1, 0.5, 0.0), Day(END), Day(END, 2, 2, 1.0, 1.0)]
    reports, rate, *_ = charts(days)
    assert [reports.height(value) for value in reports.values] == [HEIGHT - 4, 0, (HEIGHT - 4) / 2]
    assert rate.line == f"{WIDTH / 6:.1f},{HEIGHT - (HEIGHT - 4) / 4:.1f} {WIDTH * 5 / 6:.1f},4.0"


async def test_every_figure_leads_to_its_reports(full: Page) -> None:
    async with full.served() as browser:
        client = browser()
        html = await (await client.get("/figures?drug=sertraline")).text()
        links = {unescape(link) for link in re.findall(r'href="(/(?:search|pair)\?[^"]+)"', html)}
        assert f"/search?since={END}&until={END}&drug=sertraline" in links
        assert "/pair?drug=lithium&term=Psychiatric%20disorders" in {
            link.replace("+", "%20") for link in links
        }
        for link in sorted(links)[:: len(links) // 10]:
            assert (await client.get(link)).status == 200, link
        assert "▲ rising" in html and html.count('<svg class="chart"') == 4
        answer = await client.get(f"/search?since={END}&until={END}&drug=sertraline")
        assert "<p>2 reports" in await answer.text()  # the second is denied
        overview = await (await client.get("/")).text()
        for query, count in (("", 42), ("?source=posts", 42), ("?flag=nil", 1)):
            assert f'<a href="/search{query}">{count}</a>' in overview, query
            assert f"<p>{count} report" in await (await client.get(f"/search{query}")).text()
        signals = await (await client.get("/figures")).text()
        assert '/pair?drug=sertraline&amp;term=Nausea">sertraline, Nausea</a>' in signals


async def test_an_empty_store_has_no_figures(tmp_path: Path) -> None:
    fill(tmp_path / "empty.duckdb", [])
    async with Page(Settings(database=str(tmp_path / "empty.duckdb"))).served() as browser:
        assert "The store has no report." in await (await browser().get("/figures")).text()
