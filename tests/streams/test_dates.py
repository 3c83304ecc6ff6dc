"""Times as producers, sources and files write them, and which are believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dates import StatedTime, implausible, stated_time

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "moment", "assumed"),
    [
        # ISO 8601 and its relatives
        ("2026-03-04T09:15:30Z", "2026-03-04T09:15:30", False),
        ("2026-03-04T10:15:30+01:00", "2026-03-04T09:15:30", False),
        ("2026-03-04T09:15:30", "2026-03-04T09:15:30", True),
        ("2026-03-04", "2026-03-04T00:00:00", True),
        ("20260304", "2026-03-04T00:00:00", True),
        ("20260304T091530Z", "2026-03-04T09:15:30", False),
        ("2026-W10-3", "2026-03-04T00:00:00", True),
        ("2026/3/4 9:05", "2026-03-04T09:05:00", True),
        ("2026-03-04 12:00:00.123 +0000 UTC", "2026-03-04T12:00:00.123000", False),
        ("2026-03-04T24:00:00Z", "2026-03-05T00:00:00", False),
        # of health records
        ("20260304143000+0100", "2026-03-04T13:30:00", False),
        ("202603041430", "2026-03-04T14:30:00", True),
        ("20260304143015", "2026-03-04T14:30:15", True),
        (20260304, "2026-03-04T00:00:00", True),
        # of mails, feeds and programs
        ("Wed, 04 Mar 2026 10:00:00 +0200", "2026-03-04T08:00:00", False),
        ("Mi, 04 Mar 2026 10:00:00 +0100", "2026-03-04T09:00:00", False),
        ("Wed Mar 04 09:15:30 +0000 2026", "2026-03-04T09:15:30", False),
        ("Wed Mar 04 2026 10:15:30 GMT+0100 (Central European Time)", "2026-03-04T09:15:30", False),
        ("Mon, 02 Nov 2026 24:00:00 GMT", "2026-11-03T00:00:00", False),
        ("Thu, 31 Dec 2026 23:59:60 GMT", "2027-01-01T00:00:00", False),
        ("Sun, 29 Mar 2026 02:30:00 CEST", "2026-03-29T00:30:00", False),
        ("Sun, 25 Oct 2026 02:30:00 CET", "2026-10-25T01:30:00", False),
        ("Mon, 02 Nov 2026 10:00:00 IST", "2026-11-02T04:30:00", False),
        ("Mon, 02 Nov 2026 10:00:00 BST", "2026-11-02T09:00:00", False),
        ("Mon, 02 Nov 2026 10:00:00 EEST", "2026-11-02T07:00:00", False),
        ("Mon, 02 Nov 2026 10:00:00 jst", "2026-11-02T01:00:00", False),
        ("Mon, 02 Nov 2026 10:00:00 NST", "2026-11-02T13:30:00", False),
        ("Mon, 02 Nov 2026 10:00:00 PDT", "2026-11-02T17:00:00", False),
        ("Mon, 02 Nov 2026 10:00:00 AEDT", "2026-11-01T23:00:00", False),
        ("Mon, 02 Nov 2026 10:00:00 QQT", "2026-11-02T10:00:00", True),
        # of people
        ("4.3.2026", "2026-03-04T00:00:00", True),
        ("04.03.2026 21:30:15", "2026-03-04T21:30:15", True),
        ("13/3/2026", "2026-03-13T00:00:00", True),
        ("3/13/2026 12:15 AM", "2026-03-13T00:15:00", True),
        ("4/4/2026", "2026-04-04T00:00:00", True),
        ("4 March 2026 at 3:22 pm", "2026-03-04T15:22:00", True),
        ("04-Mar-2026", "2026-03-04T00:00:00", True),
        ("Sept 4th 2026", "2026-09-04T00:00:00", True),
        ("March, 4 2026", "2026-03-04T00:00:00", True),
        # since 1970
        ("1772611200", "2026-03-04T08:00:00", False),
        ("1772611200.5", "2026-03-04T08:00:00.500000", False),
        ("1772611200000", "2026-03-04T08:00:00", False),
        ("1772611200000000", "2026-03-04T08:00:00", False),
        (1772611200000000000, "2026-03-04T08:00:00", False),
        ("946684800000", "2000-01-01T00:00:00", False),
        (datetime(2026, 3, 4, 9, tzinfo=timezone(timedelta(hours=1))), "2026-03-04T08:00:00", False),
    ],
)  # fmt: skip
def test_usual_forms_are_read(value: object, moment: str, assumed: bool) -> None:
    assert stated_time(value) == StatedTime(datetime.fromisoformat(moment).replace(tzinfo=UTC), assumed)


@pytest.mark.parametrize(
    "value",
    [
        "last Tuesday", "yesterday", "soon", "12:30", "May", "March 2026", "2026-03", "31.2.2026", "3/4/26",
        "3/4/26 10:00 +0100", "2026-13-01", "4/13/2026 25:00", "2026-03-04T24:30:00Z", "0000-00-00 00:00:00",
        "0001-01-01T00:00:00+14:00", "9" * 400, "4 March 2026 " * 40, True, [], {"at": 1}, 1e300, -1e300,
        float("nan"), float("inf"), "\ud800", "n/a", "2026-03-04 and 2026-03-05",
            "2026-03-04/2026-03-10", "4 March 2026 - 5 March 2026", "04.03.2026 - 05.03.2026",
    ],
)  # fmt: skip
def test_what_is_no_time_is_unreadable(value: object) -> None:
    assert stated_time(value) == StatedTime(doubt="unreadable")


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_nothing_is_not_a_doubt(value: object) -> None:
    assert stated_time(value) == StatedTime()


def test_a_day_that_may_be_the_month_is_ambiguous_unless_the_order_is_known() -> None:
    assert stated_time("3/4/2026 10:00").doubt == stated_time("03-04-2026").doubt == "ambiguous"
    read = [stated_time("3/4/2026 10:00", day_first=first).time for first in (True, False)]
    assert read == [datetime(2026, 4, 3, 10, tzinfo=UTC), datetime(2026, 3, 4, 10, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("value", "doubt"),
    [
        ("0001-01-01T00:00:00Z", "sentinel"), ("1601-01-01", "sentinel"), ("1753-01-01", "sentinel"),
        ("1792-06-01T00:00:00Z", "sentinel"), ("1899-12-30", "sentinel"), ("1/1/1900", "sentinel"),
        ("1901-12-13T20:45:52Z", "sentinel"), ("1904-01-01", "sentinel"), (0, "sentinel"), ("0", "sentinel"),
        ("1970-01-01", "sentinel"), ("1969-12-31 16:00:00", "sentinel"), (46085, "sentinel"),
        ("1970-01-21T12:19:26Z", "sentinel"), (-62135596800, "sentinel"), (-86400, "sentinel"),
        ("2026", "sentinel"), ("202603", "sentinel"),
        ("2026-03-05T12:00:01Z", "future"), ("9999-12-31", "future"), ("2038-01-19T03:14:07Z", "future"),
        ("2126-03-04", "future"),
        ("2026-03-05T12:00:00Z", None), ("2026-03-04T23:00:00", None), ("1969-12-30", None),
        ("1970-02-01", None), ("1905-01-01", None), ("1968-05-02", None), ("1980-01-01", None),
        ("2000-01-01", None), ("2001-01-01", None), ("1985-03-02", None),
    ],
)  # fmt: skip
def test_a_time_that_a_program_wrote_for_none_or_after_the_receipt_is_not_believed(
    value: object, doubt: str | None
) -> None:
    stated = stated_time(value, NOON)
    assert stated.time is not None and stated.doubt == doubt
    assert (stated.believed, stated.seconds) == (
        (None, None) if doubt else (stated.time, stated.time.timestamp())
    )


def test_a_receipt_that_cannot_be_true_or_is_unknown_does_not_doubt_a_time() -> None:
    assert implausible(NOON, datetime(1970, 1, 1, tzinfo=UTC)) is None
    assert implausible(NOON + timedelta(days=9), None) is None


@given(
    st.text(max_size=90)
    | st.text("0123456789:-+/., TZamnovGMTEST", max_size=40)
    | (st.integers() | st.floats() | st.lists(st.integers(), max_size=2))
)
def test_any_value_gives_a_time_or_a_doubt(value: object) -> None:
    stated = stated_time(value, NOON)
    assert stated.time is None or stated.time.tzinfo is UTC
    assert stated.time is not None or stated.doubt is not None or not str(value).strip()
