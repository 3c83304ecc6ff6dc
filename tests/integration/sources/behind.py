"""What is left of deleted posts behind the stages: in the final records, and in the tables and the file of
the store, after stages with stub models and the store have worked off what sources sent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from streams.agents.pipeline import STAGES
from streams.records import Inbound
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.sources.protocols.x import PREFIX
from streams.store.changes import Batch
from streams.store.duckdb_file import DuckDatabase
from streams.store.follow import Follower
from streams.store.rows import REVISION
from streams.store.tables import EVENTS as EVENT_ROWS
from streams.store.tables import OFFSETS, PAIRS, REPORTS, TABLES
from streams.topics import EVENTS
from streams.worker import Worker
from tests.integration.sources.found import Found, counting
from tests.stubs import stub

#: Session of the stages in seconds: on a busy machine the models' threads keep the others waiting.
SESSION_SECONDS = 60.0
#: Seconds without a new final record after which it is given up, and seconds between two looks.
STALL_SECONDS, LOOK_SECONDS = 300.0, 0.2
#: Figures of a run that must be 0.
ERRORS = (
    "lost", "deletions_missing", "other_keys", "events_lost", "events_deletions_missing", "store_lost",
    "store_rows_of_deleted", "store_texts_of_deleted", "file_texts_of_deleted",
)  # fmt: skip
#: Messages of a transaction.
AT_ONCE = 25
#: Columns of a report that its deletion empties; the others say which record deleted it.
CONTENTS = tuple(name for name in REPORTS.columns if name not in {"id", "deleted", *REVISION})
#: What the texts of the players' worlds begin with.
MARK = re.compile(r"(?:post|tweet|toot|entry|line) \d+:")


class WatchedDatabase(DuckDatabase):
    """A store in a DuckDB file that remembers which reports had a text or rows in it at some time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, write=True)
        self.held: set[str] = set()

    def write(self, batch: Batch) -> None:
        super().write(batch)
        self.held |= {row["id"] for row in batch.rows.reports if not row["deleted"]}


class SmallTransactions(Follower):
    """Writes few messages at once, so that most posts are in the store before their deletion is."""

    def apply(self, messages: Sequence[Inbound]) -> None:
        for i in range(0, len(messages), AT_ONCE):
            super().apply(messages[i : i + AT_ONCE])


@dataclass(frozen=True, slots=True)
class Behind:
    """What the stages and the store have made of the topic of posts."""

    events: Found
    store: Path
    held: Set[str]
    """Ids of the reports that the store had."""

    def compared(self, expected: Mapping[str, str | None], marks: Set[str]) -> dict[str, int]:
        """Figures. `expected`: the last text of each post, None where it is deleted; `marks`: what the texts
        of the deleted ones begin with.
        """
        deleted = {id_ for id_, text in expected.items() if text is None}
        alive = {id_: text for id_, text in expected.items() if text is not None}
        return self._events(alive, deleted) | self._stored(alive, deleted, marks)

    def _events(self, alive: Mapping[str, str], deleted: Set[str]) -> dict[str, int]:
        """A post that was deleted before it was seen has no record, and needs none."""
        state = self.events.state
        return {
            "events_lost": sum(state.get(id_) != kept_text(id_, text) for id_, text in alive.items()),
            "events_tombstones": sum(id_ in state and state[id_] is None for id_ in deleted),
            "events_deletions_missing": sum(state.get(id_) is not None for id_ in deleted),
        }

    def _stored(self, alive: Mapping[str, str], deleted: Set[str], marks: Set[str]) -> dict[str, int]:
        database = DuckDatabase(self.store)
        try:
            names, rows = database.query(f"SELECT * FROM {REPORTS.name}")
            reports = {row["id"]: row for row in (dict(zip(names, r, strict=True)) for r in rows)}
            others = [
                id_ for t in (EVENT_ROWS, PAIRS)
                for (id_,) in database.query(f"SELECT report_id FROM {t.name}")[1]
            ]  # fmt: skip
            texts = _texts(database)
        finally:
            database.close()
        filled = {id_ for id_, row in reports.items() if any(row[name] is not None for name in CONTENTS)}
        there = {id_: row["text"] or "" for id_, row in reports.items() if not row["deleted"]}
        in_tables = set(MARK.findall(texts))
        in_file = {mark.decode() for mark in re.findall(MARK.pattern.encode(), self.store.read_bytes())}
        return {
            "store_lost": sum(there.get(id_) != kept_text(id_, text) for id_, text in alive.items()),
            "store_events_and_pairs": len(others),
            "store_texts": len(in_tables),
            "file_texts": len(in_file),
            "stored_then_deleted": len(self.held & deleted),
            "store_rows_of_deleted": len(deleted & (filled | there.keys()))
            + sum(i in deleted for i in others),
            "store_texts_of_deleted": len(marks & in_tables),
            "file_texts_of_deleted": len(marks & in_file),
        }


def kept_text(id_: str, text: str) -> str:
    """What the final record has of a text: the terms of X forbid keeping it."""
    return "" if id_.startswith(PREFIX) else text


def _texts(database: DuckDatabase) -> str:
    """Everything in columns of text, of all tables but the places of the consumer."""
    return "\n".join(
        value
        for table in TABLES
        if table is not OFFSETS
        for row in database.query(f"SELECT {', '.join(_text_columns(table.columns))} FROM {table.name}")[1]
        for value in row
        if value is not None
    )


def _text_columns(columns: Mapping[str, str]) -> list[str]:
    return [name for name, kind in columns.items() if kind == "text"]


async def worked_off(settings: Settings, inputs: Found, folder: Path) -> Behind:
    """Runs all stages and the store until every record of the topic of posts has a final one that is stored,
    or until no final record has come for STALL_SECONDS.
    """
    settings = settings.model_copy(update={"session_timeout": SESSION_SECONDS})
    database, stop = WatchedDatabase(folder / "events.duckdb"), asyncio.Event()
    worker = Worker(STAGES, settings, alone=True)
    worker.handles |= {stage.name: Handle(stub(stage.name)) for stage in STAGES}
    try:
        async with counting(settings, EVENTS.name) as events:
            storing = asyncio.create_task(SmallTransactions(settings, database).run(stop))
            try:
                async with worker.running():
                    with suppress(TimeoutError):
                        await _until_complete(events, inputs, storing)
            finally:
                stop.set()
                await storing
        await SmallTransactions(settings, database).run(asyncio.Event(), until_end=True)
    finally:
        database.close()
    return Behind(events, database.path, database.held)


async def _until_complete(events: Found, inputs: Found, storing: asyncio.Task[None]) -> None:
    """Waits until there are as many final records, and those that came last agree; some may come twice.
    Raises what the store raises, and TimeoutError.
    """
    before, deadline = 0, asyncio.timeout(STALL_SECONDS)
    async with deadline:
        while events.records < inputs.records or not _agree(events.state, inputs.state):
            await asyncio.sleep(LOOK_SECONDS)
            if storing.done():
                storing.result()
            if events.records > before:
                before = events.records
                deadline.reschedule(asyncio.get_running_loop().time() + STALL_SECONDS)


def _agree(events: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> bool:
    return all(events.get(id_) == (text and kept_text(id_, text)) for id_, text in inputs.items())
