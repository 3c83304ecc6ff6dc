"""Reports that repeat another one are in its group, in whatever order both come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from streams.store.changes import Batch
from streams.store.database import Database
from streams.store.rows import Row, pairs_of
from streams.store.tables import EVENTS, REPORTS, quoted

#: Ids of reports in one query.
CHUNK = 1000
#: Columns of a report that say which group it is of.
_GROUP = ("id", "report_group", "duplicate_of", "deleted")


def join_repeats(database: Database, batch: Batch) -> None:
    """Gives repeats the group of the report that they repeat: those of the batch, and stored ones of which
    the batch has the first. Where that is missing, deleted or a repeat itself, its id is their group.
    """
    given = {row["id"]: row for row in batch.rows.reports}
    stored = rows_of(database, _GROUP, "reports WHERE duplicate_of", given)
    others = {row["id"]: row for row in stored if row["id"] not in given and not row["deleted"]}
    repeats = [row for row in (*given.values(), *others.values()) if row["duplicate_of"]]
    firsts = {row["duplicate_of"] for row in repeats} - given.keys()
    known = [*given.values(), *rows_of(database, _GROUP, "reports WHERE id", firsts)]
    groups = {r["id"]: r["report_group"] for r in known if not (r["deleted"] or r["duplicate_of"])}
    joined = {row["id"]: groups.get(row["duplicate_of"], row["duplicate_of"]) for row in repeats}
    changed = [id_ for id_, row in others.items() if joined[id_] != row["report_group"]]
    _load(database, batch, changed)
    for name, rows in (("id", batch.rows.reports), ("report_id", batch.rows.pairs)):
        for row in rows:
            row["report_group"] = joined.get(row[name], row["report_group"])


def _load(database: Database, batch: Batch, ids: Sequence[str]) -> None:
    """Adds stored reports to the batch, with the events and pairs of those that it does not write anyway."""
    reports = rows_of(database, REPORTS.columns, "reports WHERE id", ids)
    batch.rows.reports += reports
    missing = set(ids) - set(batch.replaced)
    events = rows_of(database, EVENTS.columns, "events WHERE report_id", missing)
    batch.rows.events += events
    of_report: defaultdict[str, list[Row]] = defaultdict(list)
    for event in events:
        of_report[event["report_id"]].append(event)
    batch.rows.pairs += [p for row in reports for p in pairs_of(row, of_report[row["id"]])]
    batch.replaced += sorted(missing)


def rows_of(database: Database, columns: Iterable[str], of: str, ids: Iterable[str]) -> list[Row]:
    """The rows of a query that ends in the column of the ids."""
    found: list[dict[str, Any]] = []
    listed = sorted(ids)
    for i in range(0, len(listed), CHUNK):
        chosen = ", ".join(map(quoted, listed[i : i + CHUNK]))
        names, rows = database.query(f"SELECT {', '.join(columns)} FROM {of} IN ({chosen})")
        found += [dict(zip(names, row, strict=True)) for row in rows]
    return found
