"""What stands in the table of signals beside the statistics."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import orjson
import pytest

from streams.records import CodedReport, History
from streams.settings import Settings
from streams.signals.lists import LABELS_FILE, LISTS_FILE
from streams.web.signal_table import limits_line
from tests.streams.store.messages import event, report
from tests.streams.web.conftest import Client, Page, fill
from tests.streams.web.test_signal_states import shown, words

DAYS = 200
TERMS = ("Overdose", "Exposure during pregnancy", "Agranulocytosis", "Insomnia")


def made() -> list[CodedReport]:
    """Pairs of a common background, and of each of TERMS with lithium a few reports."""
    now = datetime.now(UTC)
    background = [
        report(f"b{i}", i, event("aspirin", "Fatigue"), created_at=now - timedelta(days=20 + i))
        for i in range(120)
    ]
    special = [
        replace(
            report(f"s{pt}{i}", 200 + i, event("lithium", pt), created_at=now - timedelta(days=DAYS + i)),
            country=country, indication="mania" if i else None, author="0" * 64,
        )
        for pt in TERMS for i, country in enumerate(("DE", "DE", "IE", None))
    ]  # fmt: skip
    new = [report(f"n{i}", 300 + i, event("lithium", "Rash"), created_at=now) for i in range(5)]
    return [replace(one, received_at=now) for one in background + special + new]


@pytest.fixture
def page(tmp_path: Path) -> Page:
    path = tmp_path / "columns.duckdb"
    fill(path, made())
    return Page(Settings(database=str(path)))


def keep(file: str, table: dict[str, list[str]]) -> None:
    folder = Settings().state_folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(orjson.dumps(table))


async def order(client: Client, **query: str) -> list[str]:
    html = await shown(client, "/signals", **query)
    return re.findall(r'<a href="/pair\?drug=lithium&amp;term=([^"]+)"', html)


async def row_of(client: Client, term: str) -> str:
    html = await shown(client, "/signals")
    (row,) = [one for one in html.split("<tr>") if f">{term}</a>" in one]
    return words(row)


async def test_signals_are_marked_and_sorted_by_labels_and_lists(page: Page) -> None:
    keep(LABELS_FILE, {"lithium": ["Insomnia"]})
    keep(LISTS_FILE, {"serious": ["Insomnia"]})
    async with page.served() as browser:
        client = browser()
        first = await order(client, sort="pregnancy and misuse first")
        assert {*first[:2]} == {"Overdose", "Exposure%20during%20pregnancy"}
        assert (await order(client, sort="designated first"))[0] == "Agranulocytosis"
        assert (await order(client, sort="serious first"))[0] == "Insomnia"
        assert (await order(client, sort="listed"))[-1] == "Insomnia"
        assert (await order(client, sort="new in 7 days first"))[0] == "Rash"
        assert await order(client, flag="new in 7 days") == ["Rash"]
        page_of = words(await shown(client, "/pair", drug="lithium", term="Insomnia"))
        assert re.search(r"4 unique reports, [\d.]+ expected; IC [12]\.\d\d [\d.]+ to [\d.]+ ; EBGM", page_of)
        assert "Listed: yes. serious" in page_of
        assert len(await order(client, flag="no such", state="no such")) == len(TERMS) + 1
        assert await order(client, flag="misuse") == ["Overdose"]
        assert "Insomnia" not in await order(client, flag="unlisted")
        assert "serious new yes 4" in await row_of(client, "Insomnia")
        assert "designated unlisted new no 4" in await row_of(client, "Agranulocytosis")
        assert "Fatigue new unknown 120" in await row_of(client, "Fatigue")


async def test_completeness_countries_and_history_stand_with_each_signal(page: Page) -> None:
    async with page.served() as browser:
        client = browser()
        row = await row_of(client, "Overdose")
        # All have a date and an author, three of four an indication, three a country.
        assert "88 % DE 2 IE 1" in row
        assert (await order(client, sort="completeness"))[-1] == "Rash"
        html = await shown(client, "/signals", drug="lithium", term="Rash")
        assert re.search(r'aria-label="IC025 from -?[\d.]+ to [\d.]+, EB05 from [\d.]+ to', html)


async def test_the_file_of_a_table_has_all_rows_of_its_filter(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.web.signal_pages.SHOWN", 2)
    fill(Path(page.settings.database), [report(f"f{i}", 400 + i, event("=drug", "Gout")) for i in range(3)])
    keep(LABELS_FILE, {"lithium": ["Insomnia"]})
    async with page.served() as browser:
        client = browser()
        html = await shown(client, "/signals", drug="lithium", sort="term", flag="", term="s")
        assert html.count('<a href="/pair?') == 2 and "data-in-file" in html
        (address,) = re.findall(r'<a href="([^"]+)" download>All 5 as CSV', html)
        lines = list(csv.DictReader((await shown(client, unescape(address))).splitlines()))
        assert [line["term"] for line in lines] == sorted([*TERMS, "Rash"])
        everything = await shown(client, "/signals", format="csv", state="new", flag="unlisted")
        assert len(everything.splitlines()) == 1 + len(TERMS), "the head, TERMS without Insomnia, and Rash"
        (found,) = csv.DictReader((await shown(client, "/signals", format="csv", drug="=d")).splitlines())
        (row,) = csv.DictReader((await shown(client, "/signals", format="csv", term="overd")).splitlines())
    assert (found["drug"], found["listed"]) == ("'=drug", "unknown")
    assert (row["listed"], row["flags"], row["countries"]) == ("no", "misuse; unlisted", "DE 2; IE 1")
    assert (row["all_reports"], row["state"], row["complete"]) == ("4", "new", "0.875")
    for name in ("ic", "ebgm", "prr", "ror"):
        low, high = {"ic": ("ic025", "ic975"), "ebgm": ("eb05", "eb95")}.get(
            name, (f"{name}_low", f"{name}_high")
        )
        assert float(row[low]) < float(row[name]) < float(row[high])


def test_a_line_of_limits_stays_inside_its_box() -> None:
    drawn = limits_line(
        History(weeks=("a", "b", "c"), n=(0, 1, 9), ic025=(-99.0, 0.0, 99.0), eb05=(0.0, 1.0, 4.0))
    )
    assert drawn is not None
    heights = [float(point.split(",")[1]) for name in ("ic025", "eb05") for point in drawn[name].split()]
    assert (min(heights), max(heights)) == (2.0, 22.0)
    assert drawn["ic025"].split()[1] == drawn["eb05"].split()[1], "no excess: log2 of 1 is 0"
