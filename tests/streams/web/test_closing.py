"""Queries of the page beside a task of the same process that writes the store."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from streams.settings import Settings
from streams.store.database import Database
from streams.store.opening import open_database
from streams.web.store_queries import StoreQueries, rows
from tests.streams.web.conftest import fill, reports

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
