"""Decisions as gold for `pvstream replay --against`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import orjson

from streams.store.database import Database
from streams.store.rows import REJECTED


def gold_lines(database: Database) -> Iterator[bytes]:
    """A line for each report of which every event has a valid decision: the events that were not rejected.
    Events that the models missed are not in this gold.
    """
    sql = "SELECT report_id, span_start, span_end, pt, review FROM events ORDER BY report_id, position"
    for id_, found in groupby(database.query(sql)[1], key=lambda row: row[0]):
        events = list(found)
        if all(review is not None for *_, review in events):
            kept = [
                {"start": start, "end": end, "pt": pt}
                for _, start, end, pt, review in events
                if review != REJECTED
            ]
            line: dict[str, Any] = {"id": id_, "events": kept}
            yield orjson.dumps(line) + b"\n"
