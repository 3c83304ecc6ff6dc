"""Hostile text in every field of every view: the page has the same elements and attributes as with harmless
text of the same length, so that nothing of it is one of them.
"""

from __future__ import annotations

import asyncio
import csv
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import orjson
import pytest

from models.types import Candidate, Mention, Neighbour, Relation
from streams.broker.embedded import EmbeddedBroker
from streams.settings import Settings
from streams.signals.lists import LABELS_FILE, LISTS, LISTS_FILE
from streams.store.csv_line import FORMULA
from tests.streams.store.messages import event, report
from tests.streams.web.conftest import Page, fill
from tests.streams.web.test_review import fields, follow
from tests.streams.web.test_second import HEADER, Reviewer

#: Without digits, as the name of a drug must be to be counted, and short enough for the name of a person.
EVIL = "=a'\"><script>alert()</script><img onerror=alert()>{{a}}"
LONG = f"{EVIL} `${{a}}` </title></textarea><svg/onload=alert()> &quot; javascript:alert() -->\r\n+a"
FIELDS = ("drug", "term", "text", "source", "owner", "flag", "state", "since", "sort", "window", "soc", "id",
          "order", "format", "start", "count")  # fmt: skip
REPORTS = 6


def tame(text: str) -> str:
    return re.sub(r"\S", "x", text)


class Elements(HTMLParser):
    """The elements with their attributes, and what of them a browser would load or run."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.addresses: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(name for name, _ in attrs)))
        self.addresses += [v or "" for name, v in attrs if name in {"href", "src", "action", "data-stream"}]


def fill_with(page: Page, form: Callable[[str], str]) -> None:
    """Reports of which every field that may have any text has it."""
    word, long = form(EVIL), form(LONG)
    near = Neighbour(long, 0.02, long, long, True, long)
    candidate = Candidate(word, word, word, 0.5, word)
    one = replace(event(word, word), llt=word, soc=word, mention=1, candidates=(candidate,) * 2)
    made = []
    for i in range(REPORTS):
        text = f"{long}{'yz'[i // 3]}"
        drug = Mention(0, 3, text[:3], "DRUG", 1.0, word)
        mentions = (drug, Mention(3, len(word), text[3 : len(word)], "ADE", 1.0))
        told = report(
            f"{word}{'abcdef'[i]}", i, one, text=text, mentions=mentions, source=word, country=word,
            language=word[:35], indication=word, releases={word: word}, permalink=word,
            record_id=f"{word}/{i}/f{i}/n@1", relations=(Relation(0, 1, 0.7, (near,)),),
        )  # fmt: skip
        made.append(told)
    fill(Path(page.settings.database), made)
    page.settings.state_folder.mkdir(parents=True, exist_ok=True)
    lists = {name: [word] for name in (*LISTS, word)}
    for name, table in ((LABELS_FILE, {word: [word]}), (LISTS_FILE, lists)):
        (page.settings.state_folder / name).write_bytes(orjson.dumps(table))


@asynccontextmanager
async def people(page: Page, word: str) -> AsyncIterator[list[Reviewer]]:
    async with page.served(web_user_header=HEADER, web_reviewers=f"{word},bob,cy") as browser:
        yield [Reviewer(browser(), name) for name in (word, "bob", "cy")]


async def posted(who: Reviewer, address: str, path: str, changes: dict[str, str]) -> str:
    """The answer to a form of a page."""
    html = await shown(who, address)
    form = html[html.index(f'method="post" action="{path}"') :].partition("</form>")[0]
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    data = {name: unescape(value) for name, value in hidden} | changes
    answer = await who.client.post(path, data=data, headers={HEADER: who.name})
    return await answer.text()


async def shown(who: Reviewer, address: str) -> str:
    answer = await who.client.get(address, headers={HEADER: who.name})
    return await answer.text()


async def dead_letters_counted(who: Reviewer) -> None:
    """Waits, bounded, until the overview has the topics of dead letters, which it counts beside."""
    async with asyncio.timeout(60):
        while "dead: 0</li>" not in await shown(who, "/"):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def views(page: Page, form: Callable[[str], str]) -> dict[str, str]:
    """All views and files by their names, after decisions of every kind with texts in each field."""
    word, long = form(EVIL), form(LONG)
    fill_with(page, form)
    pair, id_ = urlencode({"drug": word, "term": word}), urlencode({"id": f"{word}a"})
    query = urlencode(dict.fromkeys(FIELDS, word))
    found: dict[str, str] = {}
    async with people(page, word) as (evil, bob, cy):
        given = {"owner": word}
        found["assigned"] = await posted(evil, f"/report?{id_}", "/review/assign", given)
        state = given | {"state": "confirmed", "reason": long, "comment": long}
        for name, changes in (("signal", {}), ("bad date", {"due": word}), ("bad state", {"state": word})):
            decided = state | changes
            found[name] = await posted(evil, f"/pair?{pair}", "/review/signal", decided)
        for name, field in (("term", "term"), ("drugs", "drugs"), ("span", "span_start")):
            bad = {"action": "correct", field: f"{word}?", "reason": long}
            found[f"bad {name}"] = await posted(evil, "/review", "/review", bad)
        correct = {"action": "correct", "negated": "on", "reason": long}
        await posted(evil, "/review", "/review", correct)
        await posted(bob, "/review?order=second", "/review", {"action": "accept"})
        await follow(page.settings)
        await dead_letters_counted(evil)
        same = fields(await shown(evil, "/review"))
        del same["csrf"], same["shown"]
        addresses = [
            "/", f"/report?{id_}", f"/pair?{pair}", f"/search?{query}", "/search", "/signals",
            f"/signals?{query}", "/figures", f"/figures?{pair}", f"/figures?{query}", "/review",
            "/review?order=mine", f"/review?{query}", f"/review/same?{urlencode(same)}", "/login",
            f"/case?{id_}x", f"/signal?{pair}", f"/signal?{pair}&format=json", f"/case?{id_}",
            f"/case?{id_}&format=csv", f"/case?{id_}&format=e2b", "/search?format=csv",
            f"/terms?q={word[:1]}", f"/{query}",
        ]  # fmt: skip
        for address in addresses:
            found[address.replace(word, "").partition("?")[0] + str(len(found))] = await shown(evil, address)
        found["disputed"] = await shown(cy, "/review?order=disputed")
    return found


@pytest.mark.slow
async def test_no_text_of_any_field_is_an_element_an_attribute_or_a_formula(tmp_path: Path) -> None:
    made = []
    for name, form in (("evil", str), ("tame", tame)):
        with EmbeddedBroker() as broker:
            folder = tmp_path / name
            folder.mkdir()
            settings = Settings(
                database=str(folder / "events.duckdb"), broker=f"kafka://{broker.bootstrap}", state=folder
            )
            made.append(await views(Page(settings), form))
    evil, harmless = made
    assert sum(html.startswith("<") for html in evil.values()) > 20
    for (name, html), other in zip(evil.items(), harmless.values(), strict=True):
        if html.startswith(("{", "[")):
            orjson.loads(html.partition("\n{")[0])
            continue
        if not html.startswith("<"):
            lines = list(csv.reader(html.splitlines(keepends=True)))
            formulas = [cell for line in lines for cell in line if cell.startswith(FORMULA)]
            assert len(lines) > 1 and EVIL in html.replace('""', '"') and not formulas, name
            continue
        assert "&lt;script&gt;" in html, name
        elements = Elements(html)
        assert elements.found == Elements(other).found, name
        assert all(re.match(r"[/#]", one) for one in elements.addresses), name
        assert not [e for e in elements.found if any(a.startswith("on") or a == "style" for a in e[1:])], name
