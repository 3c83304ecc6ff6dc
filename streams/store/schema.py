"""The version of the tables: an earlier one is brought up to date, a later one refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streams.store.tables import SUMMARIES, TABLES

#: Of the tables as they are now.
VERSION = 6
_NAMES = ", ".join(SUMMARIES.columns)
#: Of the reports of version 3 those that are moved to SUMMARIES, and what lets any other record of the same
#: question replace the row that stays.
MOVED = f"SELECT {_NAMES} FROM reports WHERE summary IS NOT NULL OR deleted AND origin_topic = 'questions'"
REPLACEABLE = "generations = '[0,0,0,0,0]' WHERE summary IS NOT NULL"
#: Of the reports of version 4 those that repeat another one.
REPEATS = "duplicate_of = report_group WHERE report_group <> id"
#: What brings the tables from each earlier version to the next. Version 1 did not state itself.
MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: (
        "ALTER TABLE reports ADD COLUMN permalink text",
        "ALTER TABLE reports ADD COLUMN author_known boolean",
        "ALTER TABLE events ADD COLUMN found text",
        "ALTER TABLE reviews ADD COLUMN reading bigint",
    ),
    2: ("ALTER TABLE reports ADD COLUMN indication text",),
    3: (
        SUMMARIES.ddl(),
        f"INSERT INTO {SUMMARIES.name} ({_NAMES}) {MOVED}",
        f"UPDATE reports SET {REPLACEABLE}",
        "ALTER TABLE reports DROP COLUMN summary",
    ),
    4: (
        "ALTER TABLE reports ADD COLUMN duplicate_of text",
        f"UPDATE reports SET {REPEATS}",
    ),
    5: (
        "ALTER TABLE reports ADD COLUMN country text",
        "ALTER TABLE reports ADD COLUMN case_fields text",
    ),
}
#: Runs a statement and returns its rows.
Run = Callable[[str], list[tuple[Any, ...]]]


class OtherSchema(Exception):
    """The tables are of a version that this program cannot use; the message is one line for an operator."""


def version_of(run: Run, current: str = "current_schema()") -> int | None:
    """The version of the tables; None where there are none. `current` is the SQL of the schema that they are
    in. Raises OtherSchema for a later one.
    """
    sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema = {current}"
    names = {name for (name,) in run(sql)}
    version: int | None
    if "schema_version" in names:
        ((version,),) = run("SELECT max(version) FROM schema_version")
        # ClickHouse answers 0 for no row: its first start was ended before the last statement of `_prepare`.
        version = version or None
    else:
        version = 1 if "reports" in names else None
    if version is not None and version > VERSION:
        raise OtherSchema(
            f"the tables are of version {version}, this pvstream knows {VERSION}: use a later pvstream"
        )
    return version


def check(version: int | None) -> None:
    """For a reader, which can change nothing. Raises OtherSchema for an earlier version."""
    if version is not None and version < VERSION:
        raise OtherSchema(
            f"the tables are of version {version}, this pvstream reads {VERSION}: start `pvstream store`, "
            "which brings them up to date"
        )


def prepare(run: Run) -> None:
    """For the process that writes, in one transaction: creates what is missing and brings what is there up to
    date. Raises OtherSchema.
    """
    for statement in _due(version_of(run)):
        run(statement)


def _due(current: int | None) -> Iterator[str]:
    if current is None or current < VERSION:
        yield "CREATE TABLE IF NOT EXISTS schema_version (version bigint)"
        for version in range(current or VERSION, VERSION):
            yield from MIGRATIONS[version]
        yield "DELETE FROM schema_version"
        yield f"INSERT INTO schema_version VALUES ({VERSION})"
    yield from (table.ddl() for table in TABLES)
