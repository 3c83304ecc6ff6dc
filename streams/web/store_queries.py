"""Queries of the store, one at a time, in a separate thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from streams.settings import Settings
from streams.store.database import Database
from streams.store.open_database import open_database

T = TypeVar("T")
Rows = list[dict[str, Any]]


#: Seconds for which the store stays open: opening it takes longer than most queries, but meanwhile a
#: DuckDB file cannot be written to.
HOLD = 2.0


class StoreQueries:
    """Opens the store for a query and closes it HOLD seconds later, so that the writing process can write.

    Its thread is its own: queries that wait for the file would keep the loop's threads from the task of this
    process that has the file open, and needs one to close it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-queries")
        self._database: Database | None = None
        self._closing: asyncio.Task[None] | None = None

    async def run(self, query: Callable[[Database], T]) -> T:
        """The result of `query`, a function of the database. Raises DatabaseError."""
        try:
            return await self._in_thread(lambda: self._run(query))
        finally:
            if self._closing is None or self._closing.done():
                self._closing = asyncio.create_task(self._release())

    async def _release(self) -> None:
        await asyncio.sleep(HOLD)
        await self._in_thread(self._released)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _released(self) -> None:
        if self._database is not None:
            self._database.release()

    def _run(self, query: Callable[[Database], T]) -> T:
        if self._database is None:
            self._database = open_database(self._settings)
        try:
            return query(self._database)
        except BaseException:
            self._database.close()
            self._database = None
            raise

    async def close(self) -> None:
        """In a thread: a query that still runs may wait for a writer that needs the event loop."""
        if self._closing is not None:
            self._closing.cancel()
        await self._in_thread(self._close_database)

    def _close_database(self) -> None:
        if self._database is not None:
            self._database.close()


def rows(database: Database, sql: str) -> Rows:
    """All rows of a query, each as column name to value."""
    names, values = database.query(sql)
    return [dict(zip(names, row, strict=True)) for row in values]
