"""From the rows of people's files to reports: usual dates, ids where there are none, cells of text that stand
for other values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from models.files.row import Row
from streams.codec import BadRecord
from streams.input_reports import PRODUCER_FIELDS, report_of
from streams.records import Report

#: What programs write for a missing value, without case.
MISSING = frozenset({"", "nan", "nat", "null", "none", "na", "n/a", "<na>", "\\n"})
#: Fields whose cells are JSON or a list in JSON.
_AS_JSON = frozenset({"masked", "drug"})
#: A smaller number is no time since 1970 but, mostly, a day of Excel, which counts days since 1900.
FIRST_SECOND = 100_000
_EPOCH = re.compile(r"\d{9,10}(\.\d+)?|\d{12,13}")
_NUMERIC = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T,]+(.+))?")
_YEAR_FIRST = re.compile(r"(\d{4})[./](\d{1,2})[./](\d{1,2})(?:[ T,]+(.+))?")
_WORDS = re.compile(r"(\w{1,12})[ ./,-]{1,3}(\w{1,12})[ ./,-]{1,3}(\d{4})(?:[ T,]+(?:at )?(.+))?")
_CLOCK = re.compile(r"(\d{1,2})(:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?([ap]m)?(Z| ?[+-]\d\d:?\d\d)?", re.IGNORECASE)
_UNKNOWN = "created_at: not a time in any known format"
AMBIGUOUS = "created_at: day or month first? Say --day-first or --month-first"
#: Characters of a file's name in a made id, and hexadecimal digits of the hash.
_NAME, _DIGITS = 64, 16
_MONTHS = _HALF_DAY = 12


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that is not sent; `reason` does not quote it."""

    line: int
    reason: str
    original: bytes = b""


class RowReader:
    """Makes reports of rows.

    `name` is that of the file, for the ids that are made. `parse` makes a report of an object and raises
    BadRecord. `day_first` decides dates such as 3/4/2026; None: they are refused.
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[dict[str, Any]], Report] = report_of,
        day_first: bool | None = None,
    ) -> None:
        stem = name.lstrip(".").split(".")[0]
        self._stem = "".join(c if c.isprintable() else "_" for c in stem).strip()[:_NAME] or "file"
        self._parse = parse
        self._day_first = day_first
        self.ids_made = 0

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
            fields["created_at"] = usual_time(fields["created_at"], self._day_first)
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


def usual_time(value: Any, day_first: bool | None = None) -> Any:
    """A time that `report_of` reads, for a value in a usual form; other values unchanged, which it refuses
    where they are no times. Raises BadRecord where the day may be the month and for a small number.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < FIRST_SECOND:
        raise BadRecord("created_at: a number that is no time since 1970; format the column as a date")
    if not isinstance(value, str):
        return value
    text = " ".join(value.split())
    if _EPOCH.fullmatch(text):
        return float(text) if "." in text else int(text)
    with suppress(ValueError):
        datetime.fromisoformat(text)
        return text
    try:
        return _by_numbers(text, day_first) or _by_words(text) or text
    except BadRecord:
        raise
    except (ValueError, OverflowError, IndexError):
        raise BadRecord(_UNKNOWN) from None


def _by_numbers(text: str, day_first: bool | None) -> str | None:
    """4.3.2026, 3/4/2026 and 2026/3/4, with a time or without; raises ValueError and BadRecord."""
    if found := _YEAR_FIRST.fullmatch(text):
        year, month, day, clock = found.groups()
        return _iso(int(year), int(month), int(day), clock)
    if not (found := _NUMERIC.fullmatch(text)):
        return None
    first, separator, second, year, clock = found.groups()
    a, b = int(first), int(second)
    if separator == "." or a > _MONTHS:
        day_first = True
    elif day_first is None and b > _MONTHS:
        day_first = False
    if day_first is None and a != b:
        raise BadRecord(AMBIGUOUS)
    day, month = (a, b) if day_first else (b, a)
    return _iso(int(year), month, day, clock)


def _by_words(text: str) -> str | None:
    """March 4, 2026, 4-Mar-2026 and dates of mails; raises ValueError."""
    if (found := _WORDS.fullmatch(text)) and not found[1].isdigit() ^ found[2].isalpha():
        day, month = (found[1], found[2]) if found[1].isdigit() else (found[2], found[1])
        day = day.rstrip("sthndr")
        moment = datetime.strptime(f"{day} {month[:3]} {found[3]}", "%d %b %Y")
        return _iso(moment.year, moment.month, moment.day, found[4])
    if text[:3].isalpha() and text[3:4] == ",":
        return parsedate_to_datetime(text).isoformat()
    return None


def _iso(year: int, month: int, day: int, clock: str | None) -> str:
    """Raises ValueError."""
    date = datetime(year, month, day)
    if clock is None:
        return date.date().isoformat()
    found = _CLOCK.fullmatch(re.sub(r" ?(UTC|GMT)$", "Z", clock.strip()))
    if found is None:
        raise ValueError(clock)
    hour, rest, half, zone = found.groups()
    n = int(hour)
    if half:
        if not 1 <= n <= _HALF_DAY:
            raise ValueError(clock)
        n = n % _HALF_DAY + (_HALF_DAY if half.casefold() == "pm" else 0)
    moment = datetime.combine(date, time.fromisoformat(f"{n:02}{rest}{(zone or '').strip()}"))
    return moment.isoformat()
