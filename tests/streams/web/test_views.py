"""What the pages show, and that they show hostile texts as texts."""

from __future__ import annotations

import asyncio
import csv
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from aiokafka import AIOKafkaProducer
from pydantic import SecretStr

from docs.generate.tables import worth_table
from models.types import CaseField, Mention, Neighbour, Relation
from streams.codec import encode
from streams.order import Revision
from streams.records import CodedReport, WatchState
from streams.settings import Settings
from streams.store.changes import Batch
from streams.store.open_database import open_database
from streams.store.rows import Rows
from streams.web import live
from streams.web.app import STATIC, application, start
from streams.web.reports import pieces, totals
from streams.web.signal_table import sparkline
from streams.web.site import HERE
from tests.streams.store.messages import event, report
from tests.streams.web.conftest import HOSTILE, Client, Page, fill, reports

PAGES = (
    "/", "/signals", "/report?id=r0%22%3E%3Cscript%3E", "/pair?drug=sertraline&term=Nausea",
    "/search?text=%3Cscript%3Ealert&drug=%22%3E%3Cimg", "/search", "/figures",
    "/figures?drug=sertraline",
)  # fmt: skip


async def test_an_address_of_another_machine_is_named_with_its_setting() -> None:
    settings = Settings(web_host="host.invalid", web_port=0, web_token=SecretStr("t" * 32))
    with pytest.raises(OSError, match=r"host\.invalid:0 \(PV_WEB_HOST and PV_WEB_PORT\): .*[Nn]ame"):
        await start(application(settings, []))


@pytest.mark.parametrize("path", PAGES)
async def test_hostile_texts_ids_and_drugs_are_escaped(stored: Page, path: str) -> None:
    async with stored.served() as browser:
        answer = await browser().get(path)
        html = await answer.text()
        assert answer.status == 200
        assert "onerror=alert(2)&gt;" in html or path.startswith(("/signals", "/figures", PAGES[4]))
        assert re.findall(r"<script[^>]*>", html) == ['<script src="/static/page.js" defer>']
        assert "<img" not in html and " style=" not in html and "<style" not in html
        assert not re.search(r'(src|href|action)="(https?:)?//', html)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_style_script_and_icon_have_their_types_and_nothing_else_is_served(stored: Page) -> None:
    async with stored.served() as browser:
        client = browser()
        assert STATIC.keys() == {path.name for path in (HERE / "static").iterdir()}
        kinds = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
        for name in STATIC:
            kind = kinds[name.partition(".")[2]]
            answer = await client.get(f"/static/{name}")
            assert (answer.status, answer.content_type) == (200, kind)
            assert await answer.read() == (HERE / "static" / name).read_bytes()
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        for path in ("/static/", "/static/app.py", "/static/..%2fapp.py"):
            assert (await client.get(path)).status == 404


async def test_a_query_is_shown_as_text_and_cannot_change_the_question(stored: Page) -> None:
    async with stored.served() as browser:
        client = browser()
        answer = await client.get("/signals", params={"drug": HOSTILE, "sort": "'", "window": "x"})
        html = await answer.text()
        assert "alert(1)" in html and "<script>alert" not in html
        answer = await client.get("/pair", params={"drug": "x' OR '1'='1", "term": "Nausea"})
        assert "No report has this pair." in await answer.text()
        assert (await client.get("/report", params={"id": "' OR 1=1 --"})).status == 404


async def test_a_report_has_its_candidates_status_and_origin(stored: Page) -> None:
    async with stored.served() as browser:
        html = await (await browser().get("/report?id=r3")).text()
        for expected in ("0.870", "Feeling sick", "probability 0.87", "posts/0@3", "ner 000000000000"):
            assert expected in html
        assert '<mark class="ade">felt sick</mark><small class="note">Nausea</small>' in html


async def test_an_event_shows_the_training_pairs_by_which_it_is_related_to_a_drug(stored: Page) -> None:
    near = [
        Neighbour("ade-1", 0.02, "methimazole", HOSTILE, True, "PubMed 12"),
        Neighbour("ade-2", 0.1, "aspirin", "rash", False),
        Neighbour("ade-3", 0.2),
        Neighbour("ade-4", 0.3, "fourth", "fourth", True),
    ]
    told = report(
        "n1", 91, replace(event("clozapine"), mention=1), text="CLZ: nausea.",
        mentions=(Mention(0, 3, "CLZ", "DRUG", 1.0, "clozapine"), Mention(5, 11, "nausea", "ADE", 1.0)),
        relations=(Relation(0, 1, 2 / 3, tuple(near)),),
    )  # fmt: skip
    decided = Neighbour("r-1", 0.0, "clozapine", "Nausea", True, "review 3")
    decision = replace(told, id="n2", relations=(Relation(0, 1, 1.0, (decided, *near)),))
    fill(Path(stored.settings.database), [told, decision])
    async with stored.served() as browser:
        client = browser()
        html = await (await client.get("/report?id=n1")).text()
        assert (
            "Related to clozapine as a reviewer decided:" in await (await client.get("/report?id=n2")).text()
        )
    (reason,) = re.findall(r"<p>(Related to .*?)</ul>", html, re.DOTALL)
    shown = " ".join(re.sub(r"<(?!script)[^>]*>", " ", unescape(reason)).split())
    assert shown.startswith("Related to clozapine by 67 % of the most similar training pairs: methimazole →")
    assert "similarity 0.98 ade-1: PubMed 12 aspirin → rash, unrelated, similarity 0.90 ade-2" in shown
    assert shown.endswith("similarity 0.80 ade-3")
    assert "<script" not in reason


async def test_texts_can_be_switched_off(stored: Page) -> None:
    async with stored.served(web_texts=False) as browser:
        client = browser()
        for path in ("/", "/report?id=r3", "/pair?drug=sertraline&term=Nausea"):
            html = await (await client.get(path)).text()
            assert "felt sick" not in html and "Nausea" in html


async def test_signals_are_filtered_and_sorted_and_carry_their_caveat(stored: Page) -> None:
    async with stored.served() as browser:
        client = browser()
        html = await (await client.get("/signals?drug=sertr&soc=Gastrointestinal+disorders&sort=n")).text()
        assert "WEB-RADR" in html and "/pair?drug=sertraline&amp;term=Nausea" in html
        assert "the pairs are too few to fit one" in html
        worth = html.partition('id="worth"')[2]
        assert all(row in worth for row in worth_table()), "what a signal is worth"
        assert '<a href="/signals#worth">' in await (await client.get("/pair")).text()
        assert "<option selected>ic025" in await (await client.get("/signals?sort=unknown")).text()
        assert "No pair." in await (await client.get("/signals?drug=nobody")).text()
        assert "WEB-RADR" in await (await client.get("/pair?drug=sertraline&term=Nausea")).text()


async def test_a_known_use_is_marked_among_the_signals(stored: Page) -> None:
    fill(
        Path(stored.settings.database),
        [report(f"n{i}", 90 + i, event("sertraline", "Depression")) for i in range(3)],
    )
    async with stored.served() as browser:
        html = await signals_of(browser())
    assert re.findall(r"(\w+)</a> <span class=.flag.>known use</span>", html) == ["Depression"]


async def test_the_page_of_a_pair_says_how_many_reports_have_it_and_how_many_count(
    stored: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.web.reports.REPORTS_OF_PAIR", 7)
    more = [
        report("n0", 90, event(negated=True)), report("n1", 91, event(other_experiencer=True)),
        report("n2", 92, event(), duplicate_of="r3"), report("n3", 93, event(pt="Insomnia")),
    ]  # fmt: skip
    fill(Path(stored.settings.database), more)
    async with stored.served() as browser:
        client = browser()
        html = await (await client.get("/pair?drug=sertraline&term=Nausea")).text()
        assert "8 reports have this pair; the latest 7 of them follow. The signals count" in html
        assert "6 reports, 5 after duplicates" in html
        assert html.count("<article>") == 7
        found = {}
        for count, unit in (("unique", "unique reports"), ("all", "reports")):
            signals = await (await client.get(f"/signals?drug=sertraline&count={count}")).text()
            after = r"<td>new</td>\s*<td>unknown</td>\s*<td>(\d+) <small>(\d+) after duplicates</small></td>"
            numbers = rf'term=Nausea">Nausea</a></td>\s*{after}'
            assert re.findall(numbers, signals) == [("6", "5")]
            (found[count],) = re.findall(rf"; (\d+) {unit} in the window", signals)
        assert int(found["all"]) == int(found["unique"]) + 1
        html = await (await client.get("/pair?drug=sertraline&term=Insomnia")).text()
        assert "1 reports have this pair. The signals count" in html
        assert "1 reports, 1 after duplicates" in html


async def test_the_reports_of_a_pair_have_the_completeness_of_their_cases_and_are_sorted_by_it(
    stored: Page,
) -> None:
    told = CaseField("dose", 0, 4, "20 mg", 0.9)
    full = report("n0", 1, event(), text="20 mg sertraline", case_fields=(told,))
    fill(
        Path(stored.settings.database),
        [replace(full, country="NL", indication="gloom", created_at=datetime(2020, 1, 1, tzinfo=UTC))],
    )
    async with stored.served() as browser:
        client = browser()
        pair = "/pair?drug=sertraline&term=Nausea"
        assert f'{pair.replace("&", "&amp;")}&amp;sort=completeness">' in (await read(client, pair))
        for address, place in ((pair, -1), (f"{pair}&sort=completeness", 0)):
            found = re.findall(
                r">(\w+)</a>[^<]*<time>[^<]*</time> · completeness ([\d.]+)", await read(client, address)
            )
            assert found[place] == ("n0", max(n for _, n in found)), found
        html = await read(client, "/report?id=n0")
        assert "like vigiGrade's: 0.1" in html and "without onset, outcome, sex, age" in html
        assert "Missing: D identifiable patient." in html


async def read(client: Client, address: str) -> str:
    return await (await client.get(address)).text()


async def signals_of(client: Client) -> str:
    return await (await client.get("/signals?drug=sertraline")).text()


async def test_rates_are_up_to_the_last_report_that_is_not_deleted(stored: Page) -> None:
    gone = datetime.now(UTC) + timedelta(days=900)
    row = Rows()
    row.add("gone", Revision(received_at=gone), None)
    database = open_database(stored.settings, write=True)
    database.write(Batch(row))
    (rates,) = totals(database)["rates"]
    database.close()
    assert (rates["reports"], rates["hour"], rates["day"]) == (6, 6, 6)


async def test_the_page_gives_a_case_and_keeps_texts_back(stored: Page) -> None:
    for texts, shown in ((True, "took sertraline and felt sick 3"), (False, None)):
        async with stored.served(web_texts=texts) as browser:
            client = browser()
            answer = await client.get("/case?id=r3")
            assert answer.content_type == "application/json"
            case = await answer.json()
            assert (case["id"], case["text"], case["decided"]) == ("r3", shown, False)
            answer = await client.get("/case?id=r3&format=csv")
            assert answer.content_type == "text/csv"
            assert "attachment" in answer.headers["Content-Disposition"]
            assert len(list(csv.reader((await answer.text()).splitlines()))) == 2
            draft = await (await client.get("/case?id=r3&format=e2b")).json(content_type=None)
            assert (draft["C.1"]["C.1.1"], draft["H"]["H.1"]) == ("DRAFT-r3", shown)
            assert (await client.get("/case?id=nobody")).status == 404


@pytest.mark.slow
async def test_a_report_that_arrives_is_sent_to_who_looks(brokered: Page) -> None:
    async with brokered.served() as browser:
        client = browser()
        async with client.get("/live") as stream:
            async with asyncio.timeout(120):
                assert await stream.content.readline() == b": hello\n"
                await produce(brokered.settings, reports(1)[0])
                shown = b""
                while b"</article>" not in shown:
                    shown += await stream.content.readline()
        assert b"event: report" in shown and b"<script" not in shown and b"&lt;script&gt;" in shown


async def test_the_rate_is_sent_while_reports_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PING_SECONDS", 0.5)
    followed = live.Live(Settings(), lambda _: "<p>")
    app = web.Application()
    app.add_routes([web.get("/live", followed.stream)])
    value = encode(reports(1)[0])

    async def arrive() -> None:
        while True:
            followed.offer(value)
            await asyncio.sleep(0.21)

    async with TestClient(TestServer(app)) as client, client.get("/live") as stream:
        arriving = asyncio.create_task(arrive())
        async with asyncio.timeout(120):
            while await stream.content.readline() != b"event: rate\n":
                pass
        arriving.cancel()


async def produce(settings: Settings, record: CodedReport) -> None:
    """Again and again, because the page may not yet follow the end of the topic."""
    async with AIOKafkaProducer(**settings.client()) as producer:
        for _ in range(20):
            await producer.send_and_wait("events", encode(record), key=record.id.encode())
            await asyncio.sleep(0.1)


def test_overlapping_mentions_are_cut_at_every_boundary_and_thousands_at_once() -> None:
    outer = {"start": 0, "end": 6, "label": "ADE", "generic": None}
    inner = {"start": 2, "end": 4, "label": "DRUG", "generic": "lithium"}
    found = pieces("abcdefgh", [outer, inner, {"start": 7, "end": 99, "label": "ADE", "generic": None}], [])
    assert [(p["text"], p["label"], p["notes"]) for p in found] == [
        ("ab", "ade", []), ("cd", "drug", ["lithium"]), ("ef", "ade", ["ade"]), ("gh", None, []),
    ]  # fmt: skip
    # A message may have so many, and live reports are cut in the event loop; comparing all takes seconds.
    mentions = [
        {"start": i, "end": i + 9, "label": "DRUG", "generic": "ibuprofen"} for i in range(0, 70_000, 10)
    ]
    began = time.process_time()
    found = pieces("ibuprofen " * 7000, mentions, [])
    assert time.process_time() - began < 2
    assert [p["notes"] for p in found] == [["ibuprofen"], []] * 7000


def test_a_sparkline_has_a_point_for_each_week_inside_its_box() -> None:
    state = WatchState(
        weeks=("a", "b", "c"), n=(0, 4, 2), expected=(1.0, 1.5, 2.0), ratio=1.0, critical=3.0, signalled=False
    )
    drawn = sparkline(state)
    assert drawn is not None
    assert drawn["n"] == "0,22.0 60,2.0 120,12.0"
    assert drawn["label"] == "6 reports in 3 weeks, 4.5 expected"
