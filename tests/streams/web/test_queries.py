"""The queries of a view do not grow with the store, and leave a writer of the same process its file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from streams.settings import Settings
from streams.store.database import Database
from streams.store.duckdb_file import DuckDatabase
from streams.store.open_database import open_database
from streams.web.queue import FETCHED
from streams.web.store_queries import StoreQueries, rows
from tests.streams.web.conftest import Page, fill, reports

#: Path of each view to the most queries that it makes.
VIEWS = {
    "/": 9,
    "/report?id=r3": 6,
    "/pair?drug=sertraline&term=Nausea": 7,
    "/signals": 1,
    "/review?order=uncertainty": 10,
    "/review?order=seriousness": 10,
    "/review?order=random": 10,
    "/terms?q=sick": 0,
    "/drugs?q=prozac": 0,
    "/search?term=nausea&text=sick": 8,
    "/figures": 6,
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


async def test_a_view_makes_few_queries_and_reads_few_rows(
    brokered: Page, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It asks for the decisions on signals at a time of its own, so that a view seemed to have asked.
    monkeypatch.setattr("streams.web.signal_pages.keep_reopened", lambda *_: asyncio.sleep(0))
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


async def test_signals_are_computed_at_the_start_not_for_each_view(stored: Page, asked: list[int]) -> None:
    async with stored.served() as browser:
        client = browser()
        assert (await client.get("/signals")).status == 200
        asked.clear()
        for query in ("", "?sort=n", "?drug=sertraline&window=90d"):
            assert (await client.get(f"/signals{query}")).status == 200
        assert asked == [0, 0, 0], "only the decisions on signals, of which there is none"


#: Seconds that a query waits for the loop before it gives up.
PATIENCE = 20.0


async def test_the_loop_goes_on_while_a_query_keeps_the_store_from_being_closed(tmp_path: Path) -> None:
    """As in a process that also writes the store: what writes it is a task of the same loop."""
    path = tmp_path / "events.duckdb"
    fill(path, reports(1))
    queries = StoreQueries(Settings(database=str(path)))
    begun, written = threading.Event(), threading.Event()

    def waits_for_the_loop(_: Database) -> bool:
        begun.set()
        return written.wait(PATIENCE)

    query = asyncio.create_task(queries.run(waits_for_the_loop))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    closing = asyncio.create_task(queries.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    written.set()
    assert await query, "the loop stood still"
    await closing


async def test_queries_that_wait_for_the_file_leave_the_writer_a_thread_to_close_it(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    fill(path, reports(1))
    settings = Settings(database=str(path))
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    writer = open_database(settings, write=True)
    await asyncio.to_thread(writer.offsets)  # opens the file
    queries = StoreQueries(settings)
    asked = [asyncio.create_task(queries.run(lambda d: rows(d, "SELECT 1 AS n"))) for _ in range(3)]
    await asyncio.sleep(0.1)
    async with asyncio.timeout(PATIENCE):
        await asyncio.to_thread(writer.release)
        assert await asyncio.gather(*asked) == [[{"n": 1}]] * 3
    await queries.close()
    writer.close()
