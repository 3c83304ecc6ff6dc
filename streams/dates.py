"""Times as producers, sources and files state them: read in every usual form, believed where that can be.

All entrances ask `stated_time`. A time that is not read or not believed never costs the report.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Literal

from dateutil.parser import parse, parserinfo

#: A time that was read as UTC may be that of another zone.
AHEAD = timedelta(days=1)
#: Before it lie the first days of the calendars of programs: 1-1-1, 1601, 1753, 1899-12-30, 1900, 1901, 1904.
FIRST_DAY = datetime(1905, 1, 1, tzinfo=UTC)
#: Zero seconds since 1970 in any zone, days of Excel read as seconds, and, up to the year 2050, seconds that
#: were read as milliseconds.
ZERO = datetime(1969, 12, 31, tzinfo=UTC), datetime(1970, 2, 1, tzinfo=UTC)
Doubt = Literal["unreadable", "ambiguous", "sentinel", "future"]
#: A number of seconds from here on (the year 5138) is read as milliseconds, microseconds or nanoseconds.
FIRST_MILLISECONDS = 1e11
#: Characters of the longest text that is read.
_LONGEST = 80
_NUMBER = re.compile(r"-?\d{1,20}(\.\d{0,20})?")
#: `fromisoformat` takes any character for the `T` before a time, so also one of a longer number.
_LONG_NUMBER = re.compile(r"\d{9}")
_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
#: 3/4/26: the year may be each of the three.
_NO_YEAR = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{1,2}(?!\d)")
_EITHER, _DAY_FIRST = re.compile(r"\d{1,2}([/-])\d{1,2}\1\d{4}"), re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
#: A range of dates: the parser would read the second year as a time of the day.
_TWO_YEARS = re.compile(r"(?<![\d+-])\d{4}(?!\d).*(?<![\d+-])\d{4}(?!\d)")
_WEEKDAY = re.compile(r"([^\W\d_]{1,20})\.?, ?(?=\d)")
_MIDNIGHT = re.compile(r"(?<![\d:])24(?=:00(?::00(?:\.0*)?)?(?![\d:]))")
_LEAP_SECOND = re.compile(r"(?<=\d\d:\d\d:)60(?!\d)")
#: An offset and a name of the same zone: `GMT+0100 (CENTRAL EUROPEAN TIME)` of browsers, `+0000 UTC` of Go.
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-]\d{1,2}(?::?\d\d)?)(?: \(?[A-Z][A-Z ]*\)?)?$")
#: Hours from UTC by name, as mail and news use the names. Of those with several meanings the one of the most
#: people who write English: IST is India's, BST Britain's, CST, MST, PST and AST America's.
_HOURS: dict[float, str] = {
    -10: "HST", -9: "AKST", -8: "PST AKDT", -7: "MST PDT", -6: "CST MDT", -5: "EST CDT COT PET",
    -4: "EDT AST BOT CLT", -3.5: "NST", -3: "ADT ART BRT CLST UYT", -2.5: "NDT", 0: "UTC GMT UT Z WET",
    1: "CET MEZ BST WEST WAT", 2: "CEST MESZ EET SAST CAT", 3: "EEST MSK TRT EAT", 3.5: "IRST", 4: "GST",
    4.5: "AFT", 5: "PKT", 5.5: "IST", 5.75: "NPT", 6.5: "MMT", 7: "ICT WIB", 8: "AWST HKT MYT PHT SGT WITA",
    9: "JST KST WIT", 9.5: "ACST", 10: "AEST", 10.5: "ACDT", 11: "AEDT", 12: "NZST", 13: "NZDT",
}  # fmt: skip
_ZONES = {name: timezone(timedelta(hours=h)) for h, names in _HOURS.items() for name in names.split()}
_INFO = parserinfo()


@dataclass(frozen=True, slots=True)
class StatedTime:
    """What was stated. Nothing at all has neither a time nor a doubt."""

    time: datetime | None = None
    """In UTC; None where it could not be read."""
    assumed_utc: bool = False
    """It had no zone, or one of an unknown name."""
    doubt: Doubt | None = None
    """Why the time of receipt counts in its place: it is no time, its day may be its month, a program wrote
    it for an unknown time, or it is later than the receipt.
    """

    @property
    def believed(self) -> datetime | None:
        return None if self.doubt else self.time

    @property
    def seconds(self) -> float | None:
        """Since 1970, where it is believed."""
        return self.believed.timestamp() if self.believed else None


def stated_time(value: object, received: datetime | None = None, day_first: bool | None = None) -> StatedTime:
    """The time in `value`: ISO 8601, a date of mails, a usual written date, or a number since 1970; without a
    zone in UTC. `day_first` decides dates such as 3/4/2026.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return StatedTime()
    try:
        read = _read(value, day_first)
        # Also checks that the time has an equivalent in UTC.
        time = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except _Ambiguous:
        return StatedTime(doubt="ambiguous")
    except (ValueError, OverflowError, OSError, TypeError):
        return StatedTime(doubt="unreadable")
    return StatedTime(time, read.tzinfo is None, implausible(time, received))


def implausible(time: datetime, received: datetime | None) -> Doubt | None:
    """Why a time is none at which a report can have been written that came at `received`; None where it may
    be one. A time of receipt that cannot be true says nothing.
    """
    if time < FIRST_DAY or ZERO[0] <= time < ZERO[1]:
        return "sentinel"
    known = received is not None and implausible(received, None) is None
    return "future" if known and received is not None and time - received > AHEAD else None


class _Ambiguous(ValueError):
    """The day may be the month."""


def _read(value: object, day_first: bool | None) -> datetime:
    """Raises ValueError, OverflowError, OSError and TypeError."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    if not isinstance(value, str):
        return _since_1970(int(value) if isinstance(value, float) and value.is_integer() else value)
    text = " ".join(value.split())
    if len(text) > _LONGEST:
        raise ValueError
    if _NUMBER.fullmatch(text):
        return _since_1970(float(text) if "." in text else int(text))
    if not _LONG_NUMBER.match(text):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    return _written(text.upper(), day_first)


def _since_1970(number: float) -> datetime:
    """Also a date without any separator, which is a number too."""
    digits = str(number)
    if form := _COMPACT.get(len(digits)):
        with suppress(ValueError):
            day = datetime.strptime(digits, form)
            if FIRST_DAY.year <= day.year < 2100:  # noqa: PLR2004  later ones are milliseconds
                return day
    for _ in range(3):
        number = number / 1000 if abs(number) >= FIRST_MILLISECONDS else number
    return datetime.fromtimestamp(number, UTC)


def _written(text: str, day_first: bool | None) -> datetime:
    """A text in capitals; raises ValueError, OverflowError and TypeError."""
    if (found := _WEEKDAY.match(text)) and _INFO.month(found[1]) is None:
        text = text[found.end() :]
    if _NO_YEAR.match(text) or _TWO_YEARS.search(text):
        raise ValueError
    text, midnights = _MIDNIGHT.subn("00", _OFFSET.sub(r"\1", text))
    text, leaps = _LEAP_SECOND.subn("59", text)
    orders = [_DAY_FIRST.match(text) is not None]
    if _EITHER.match(text):
        orders = [False, True] if day_first is None else [day_first]
    read = {_parsed(text, order) for order in orders}
    if len(read) > 1:
        raise _Ambiguous
    return read.pop() + timedelta(days=midnights, seconds=leaps)


def _parsed(text: str, day_first: bool) -> datetime:
    """Raises ValueError also for a text without a year, a month or a day."""
    moment: datetime = parse(text, _INFO, default=_Whole(1, 1, 1), dayfirst=day_first, tzinfos=_zone)
    return moment


class _Whole(datetime):
    """From it the parser would take the parts of a date that a text lacks."""

    def replace(self, *_: Any, **parts: Any) -> Any:
        """The parts alone; raises ValueError without a year, a month or a day."""
        if not {"year", "month", "day"} <= parts.keys():
            raise ValueError("a part of a date")
        return datetime(**parts)


def _zone(name: str | None, offset: int | None) -> tzinfo | None:
    """None: unknown."""
    return timezone(timedelta(seconds=offset)) if offset is not None else _ZONES.get(name or "")
