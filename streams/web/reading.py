"""Questions to the store, one at a time, in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from streams.settings import Settings
from streams.store.database import Database, open_database

T = TypeVar("T")
Rows = list[dict[str, Any]]


class Reading:
    """Opens the store for each view and closes it, so that the process that writes can write."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._database: Database | None = None

    async def ask(self, question: Callable[[Database], T]) -> T:
        """What a function makes of the database. Raises DatabaseError."""
        return await asyncio.to_thread(self._asked, question)

    def _asked(self, question: Callable[[Database], T]) -> T:
        with self._lock:
            if self._database is None:
                self._database = open_database(self._settings)
            try:
                return question(self._database)
            except BaseException:
                self._database.close()
                self._database = None
                raise
            finally:
                if self._database is not None:
                    self._database.release()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()


def rows(database: Database, sql: str) -> Rows:
    """All rows of a question, each by the names of its columns."""
    names, found = database.query(sql)
    return [dict(zip(names, row, strict=True)) for row in found]
