"""From rows of files to reports: dates, ids where there are none, texts that stand for values."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from models.files.row import Row
from streams.codec import BadRecord
from streams.dates import Doubt, stated_time
from streams.input_reports import PRODUCER_FIELDS, report_of
from streams.records import Report

#: What programs write for a missing value, without case.
MISSING = frozenset({"", "nan", "nat", "null", "none", "na", "n/a", "<na>", "\\n"})
#: Fields whose cells are JSON or a list in JSON.
_AS_JSON = frozenset({"masked", "drug"})
#: Characters of a file's name in a made id, and hexadecimal digits of the hash.
_NAME, _DIGITS = 64, 16


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that is not sent; `reason` does not quote it."""

    line: int
    reason: str
    original: bytes = b""


class RowReader:
    """Makes reports of rows.

    `name` is that of the file, for the ids that are made. `parse` makes a report of an object and raises
    BadRecord. `day_first` decides dates such as 3/4/2026; None: they are left out.
    """

    def __init__(
        self, name: str, parse: Callable[[dict[str, Any]], Report] = report_of, day_first: bool | None = None
    ) -> None:
        stem = name.lstrip(".").split(".")[0]
        self._stem = "".join(c if c.isprintable() else "_" for c in stem).strip()[:_NAME] or "file"
        self._parse = parse
        self._day_first = day_first
        self.ids_made = 0
        self.dates_left_out: Counter[Doubt] = Counter()
        """Times that are not in the reports, which then count from their receipt on."""

    def read(self, row: Row) -> Report | Refusal:
        if row.content is None:
            return Refusal(row.number, row.reason, row.original)
        try:
            return self._parse(self._report_fields(row.content))
        except BadRecord as error:
            return Refusal(row.number, str(error), row.original)

    def _report_fields(self, content: Mapping[str, Any]) -> dict[str, Any]:
        fields = {name: value for name, value in content.items() if not _is_missing(name, value)}
        for name in _AS_JSON & fields.keys():
            fields[name] = _from_json(fields[name])
        flag = fields.get("aggregate_only")
        if isinstance(flag, str) and flag.strip().casefold() in {"true", "false"}:
            fields["aggregate_only"] = flag.strip().casefold() == "true"
        if "created_at" in fields:
            created = stated_time(fields["created_at"], datetime.now(UTC), self._day_first)
            if created.doubt:
                self.dates_left_out[created.doubt] += 1
            elif created.time:
                fields["created_at"] = created.time.replace(tzinfo=None if created.assumed_utc else UTC)
        if "id" not in content:  # the file has no ids
            self.ids_made += 1
            data = orjson.dumps(dict(content), option=orjson.OPT_SORT_KEYS, default=str)
            fields["id"] = f"{self._stem}-{hashlib.sha256(data).hexdigest()[:_DIGITS]}"
        return fields


def _is_missing(name: str, value: object) -> bool:
    if name == "text" or name not in PRODUCER_FIELDS:
        return False
    return value is None or (isinstance(value, str) and value.strip().casefold() in MISSING)


def _from_json(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(value)
    return value
