"""The queries of a view and their rows do not grow with the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.store.duckdb_file import DuckDatabase
from streams.web.queue import FETCHED
from tests.streams.web.conftest import Page, fill, reports

#: Path of each view to the most queries that it makes.
VIEWS = {
    "/": 8,
    "/report?id=r3": 4,
    "/pair?drug=sertraline&term=Nausea": 4,
    "/review?order=uncertainty": 8,
    "/review?order=seriousness": 8,
    "/review?order=random": 8,
    "/terms?q=sick": 0,
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each query of a reader."""
    counts: list[int] = []
    query = DuckDatabase.query

    def counted(database: DuckDatabase, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        names, found = query(database, sql)
        rows = list(found)
        counts.append(len(rows))
        return names, iter(rows)

    monkeypatch.setattr(DuckDatabase, "query", counted)
    return counts


async def test_a_view_makes_few_queries_and_reads_few_rows(brokered: Page, asked: list[int]) -> None:
    found: dict[str, int] = {}
    for count in (6, FETCHED + 50):
        fill(Path(brokered.settings.database), reports(count))
        async with brokered.served() as browser:
            client = browser()
            assert (await client.get("/signals")).status == 200
            for path, most in VIEWS.items():
                asked.clear()
                assert (await client.get(path)).status == 200
                assert len(asked) == found.setdefault(path, len(asked)) <= most
                assert max(asked, default=0) <= FETCHED


async def test_signals_are_computed_when_the_page_starts_and_not_again_for_each_view(
    stored: Page, asked: list[int]
) -> None:
    async with stored.served() as browser:
        client = browser()
        assert (await client.get("/signals")).status == 200
        asked.clear()
        for query in ("", "?sort=n", "?drug=sertraline&window=90d"):
            assert (await client.get(f"/signals{query}")).status == 200
        assert asked == []
