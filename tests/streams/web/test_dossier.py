"""The files of a signal: whole, self-contained, and with hostile texts as texts."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import pytest

from models.case_fields.fields import case_fields
from models.types import Mention, Neighbour, Relation
from streams.records import CodedReport, SignalStatus
from streams.signals.particulars import particulars
from streams.signals.surveillance import Options, Surveillance
from streams.store.follow import Follower
from streams.store.open_database import open_database
from tests.streams.store.messages import event, message, report
from tests.streams.store.test_signal_decisions import on_signal, written
from tests.streams.web.conftest import HOSTILE, Page, fill
from tests.streams.web.test_signal_states import PAIR, shown

#: Without a digit, else it is in no pair.
DRUG = "<img src=x onerror=alert()> \"&amp; '</p>"


@pytest.fixture
def decided(stored: Page) -> Page:
    """With a report of DRUG, whose relation has a hostile neighbour, and decisions on both signals."""
    near = Neighbour("ade-1", 0.02, "methimazole", HOSTILE, True, "PubMed 12")
    text = f"{HOSTILE} \r\n and nausea."
    at = text.index("nausea")
    mentions = Mention(0, 4, "<scr", "DRUG", 1.0, "clozapine"), Mention(at, at + 6, "nausea", "ADE", 1.0)
    made = report("h", 40, replace(event(DRUG), mention=1), text=text, mentions=mentions)
    made = replace(made, relations=(Relation(0, 1, 2 / 3, (near,)),))
    texts = {"reason": HOSTILE, "comment": HOSTILE, "reviewer": HOSTILE}
    decisions = [
        on_signal(0, "confirmed", drug=DRUG, **texts),
        on_signal(1, "under review", reports=5, reason="listed"),
    ]  # fmt: skip
    decisions[0] = replace(decisions[0], after=SignalStatus(state="confirmed", owner=HOSTILE))
    database = open_database(stored.settings, write=True)
    Follower(stored.settings, database).apply([message(90, made), *map(written, decisions)])
    database.close()
    return stored


async def test_a_file_has_reports_neighbours_history_decisions_and_what_was_done(decided: Page) -> None:
    async with decided.served() as browser:
        client = browser()
        html = await shown(client, "/pair", **PAIR)
        for form in ("html", "json"):
            assert f"/signal?drug=sertraline&amp;term=Nausea&amp;format={form}" in html
        answer = await client.get("/signal", params=PAIR | {"format": "json"})
        assert answer.headers["Content-Disposition"] == 'attachment; filename="signal.json"'
        found = await answer.json()
        page = await shown(client, "/signal", **PAIR)
        assert (await client.get("/signal", params=PAIR | {"term": "none"})).status == 404
    assert [one["id"] for one in found["reports"]] == ['r1"><script>', "r2", "r3", "r4", "r5"]
    assert found["reports"][0]["events"][0]["candidates"][0]["llt"] == "Feeling sick"
    assert len(found["signal"]["history"]["ic025"]) == 13
    assert (found["status"]["state"], found["decisions"][0]["reason"]) == ("under review", "listed")
    names = [name for name, _ in particulars_of(decided)]
    of_pair = ["Title", "Label", "Numbers", "Persons", "Caveat"]
    assert list(found["particulars"]) == names + of_pair and {"Unit", "Limits", "Thresholds"} < {*names}
    for text in (
        *names,
        "felt sick</mark>",
        "Feeling sick 0.870",
        "State: under review, bob",
        "IC025 from",
        "listed",
    ):
        assert text in page, text
    assert not re.search(r"<[^>]*(src|href)=|<script", page), "nothing is loaded and nothing runs"


async def test_a_file_has_each_item_of_readus_pv_or_says_that_a_person_writes_it(decided: Page) -> None:
    made = [replace(one, case_fields=case_fields(one.text, ())) for one in persons()]
    fill(Path(decided.settings.database), made)
    async with decided.served() as browser:
        client = browser()
        found = await (await client.get("/signal", params=PAIR | {"format": "json"})).json()
        page = await shown(client, "/signal", **PAIR)
    items = {item["item"]: item for item in found["readus_pv"]}
    letters = {2: "abc", 6: "abcd", 7: "abcde", 12: "abc", 14: "abcd"} | dict.fromkeys((1, 4, 5, 8), "ab")
    numbers = [f"{n}{letter}" for n in range(1, 15) for letter in letters.get(n, [""])]
    assert [*items] == [*numbers, "Abstract"] and len(numbers) == 32
    headings = {name.split(":")[0] for name in re.findall("<h2>(.*?)</h2>", page)}
    for item in items.values():
        stated = {*item["stated_in"].split(", ")} - {""}
        assert stated <= {*found["particulars"]} | headings and (stated or item["to_be_written"]), item
        cells = "</td><td>".join(map(escape, item.values()))
        assert f"<tr><td>{cells}</td></tr>" in page
    assert {*found["particulars"]} <= {n for item in items.values() for n in item["stated_in"].split(", ")}
    for number in ("8b", "9", "10", "11", "12a", "12b", "12c", "13"):
        assert items[number]["to_be_written"], number
    told = "1 female, 1 male; 2 ages from 7 to 34; serious events in 1 reports"
    assert told in found["particulars"]["Persons"]
    assert found["particulars"]["Numbers"].startswith("7 reports have the pair; 7 affirmed")


def persons() -> list[CodedReport]:
    """A woman of 34 years, and a boy of 7 with a serious event."""
    texts = ("I am a 34 year old woman", "my son is a 7 year old male")
    return [
        report(f"p{i}", 60 + i, event(serious=bool(i)), text=f"{text}: text of nausea")
        for i, text in enumerate(texts)
    ]


def particulars_of(page: Page) -> list[tuple[str, str]]:
    database = open_database(page.settings)
    found = list(particulars(Surveillance(database, Options()).compute(datetime.now(UTC)), [], ""))
    database.close()
    return found


async def test_hostile_texts_in_a_file_are_texts(decided: Page) -> None:
    async with decided.served() as browser:
        client = browser()
        page = await shown(client, "/signal", drug=DRUG, term="Nausea")
        assert "Related to clozapine by 67 %" in page and "confirmed" in page
        assert page.count("alert(2)&gt;") >= 5, "text, neighbour, reviewer, owner, reason and comment"
        for mark in ("<script", "<img", "onerror=alert()>"):
            assert mark not in page
        json = await (
            await client.get("/signal", params={"drug": DRUG, "term": "Nausea", "format": "json"})
        ).json()
        assert json["reports"][0]["mentions"][1]["reasons"][0]["neighbours"][0]["effect"] == HOSTILE


async def test_a_file_has_no_texts_where_they_are_switched_off(decided: Page) -> None:
    async with decided.served(web_texts=False) as browser:
        client = browser()
        for form in ("html", "json"):
            found = await shown(client, "/signal", **PAIR, format=form)
            assert "felt sick" not in found and "Nausea" in found
