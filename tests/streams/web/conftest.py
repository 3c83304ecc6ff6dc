"""A store with a few reports, a broker in this process, and the page over both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import CookieJar
from aiohttp.test_utils import TestClient, TestServer

from models.terminology import Term
from models.types import Candidate, Mention
from streams.broker.embedded import EmbeddedBroker
from streams.order import revision_of
from streams.records import CodedReport
from streams.settings import Settings
from streams.store.changes import Read, fold
from streams.store.open_database import open_database
from streams.store.repeats import join_repeats
from streams.store.tables import REPORTS
from streams.web.app import application
from tests.streams.store.messages import event, report

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \"&amp; '</p>"
TERMS = [
    Term("Nausea", "Nausea", "Gastrointestinal disorders"),
    Term("Feeling sick", "Nausea", "Gastrointestinal disorders"),
    Term("Sleepless", "Insomnia", "Psychiatric disorders", serious=True),
]
Client = TestClient[Any, Any]


def reports(count: int = 6) -> list[CodedReport]:
    """One event each, of lower cosine the later it comes; the first two are dangerous."""
    now = datetime.now(UTC)
    made = []
    for i in range(count):
        text = f"{HOSTILE if i < 2 else 'took sertraline'} and felt sick {i}"
        id_ = f'r{i}"><script>' if i < 2 else f"r{i}"
        at = text.index("felt sick")
        found = replace(
            event(drug=HOSTILE if i == 0 else "sertraline"), mention=0, score=0.9 - i / 100,
            candidates=(Candidate("Feeling sick", "Nausea", "Gastrointestinal disorders", 0.9 - i / 100),),
        )  # fmt: skip
        one = report(
            id_, i, found, text=text, created_at=now - timedelta(minutes=count - i),
            record_id=f"posts/{id_}/f{i}/normalization@1", releases={"ner": "0" * 12},
        )  # fmt: skip
        mentions = (Mention(at, at + 9, "felt sick", "ADE", 0.9, status="own", status_score=0.87),)
        made.append(replace(one, mentions=mentions))
    return made


def crowded(count: int = 14) -> CodedReport:
    """A long text with many events, each with five candidates, and words that are wider than a telephone."""
    class_, word = "General disorders and administration site conditions", "w" * 90
    candidates = (
        Candidate("Feeling sick", "Nausea", "Gastrointestinal disorders", 0.62),
        Candidate("Sleepless", "Insomnia", "Psychiatric disorders", 0.6),
        Candidate("Depersonalisation", "Depersonalisation/derealisation disorder", class_, 0.58),
        Candidate(f"Term {word}", "Myelin oligodendrocyte glycoprotein antibody", class_, 0.5),
        Candidate("Malaise", "Malaise", class_, 0.4), Candidate("Sixth", "Sixth", class_, 0.3),
    )  # fmt: skip
    text, mentions, events = f"It began in spring {word}. ", [], []
    for i in range(count):
        text += "For days I took sertraline as I was told to, and nothing happened until evening. I "
        mentions.append(Mention(len(text), len(text) + 9, "felt sick", "ADE", 0.9))
        text += "felt sick, then it went. "
        # The event in the middle is the least certain one.
        score = 0.5 if i == count // 2 else 0.6
        events.append(replace(event(), mention=i, score=score, candidates=candidates))
    broad = candidates[2]
    events[-1] = replace(events[-1], llt=broad.llt, pt=broad.pt, soc=broad.soc)
    return report(
        f"crowded-{word}", 50, *events, text=text, mentions=tuple(mentions),
        record_id=f"posts/crowded-{word}/c/normalization@1", created_at=datetime.now(UTC),
        releases={"ner": "0" * 12},
    )  # fmt: skip


def fill(path: Path, made: list[CodedReport]) -> None:
    database = open_database(Settings(database=str(path)), write=True)
    read = [Read(r.id, revision_of(r), r) for r in made]
    batch = fold(read, database.revisions(REPORTS, [r.id for r in made]))
    join_repeats(database, batch)
    database.write(batch)
    database.close()


@dataclass(frozen=True)
class Page:
    """Starts the page with other settings and opens browsers."""

    settings: Settings

    @asynccontextmanager
    async def served(self, **changes: Any) -> AsyncIterator[Callable[[], Client]]:
        app = application(self.settings.model_copy(update=changes), TERMS)
        server = TestServer(app)
        clients: list[Client] = []
        await server.start_server()

        def browser() -> Client:
            clients.append(TestClient(server, cookie_jar=CookieJar(unsafe=True)))
            return clients[-1]

        try:
            yield browser
        finally:
            for client in clients:
                await client.session.close()
            await server.close()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page closes its file soon, and who follows the topics writes soon."""
    monkeypatch.setattr("streams.web.store_queries.HOLD", 0.05)
    monkeypatch.setattr("streams.store.follow.WAIT", 0.05)


@pytest.fixture
def stored(tmp_path: Path) -> Page:
    """Without a broker."""
    path = tmp_path / "events.duckdb"
    fill(path, reports())
    return Page(Settings(database=str(path)))


@pytest.fixture
def brokered(stored: Page) -> Iterator[Page]:
    with EmbeddedBroker() as broker:
        yield Page(stored.settings.model_copy(update={"broker": f"kafka://{broker.bootstrap}"}))
