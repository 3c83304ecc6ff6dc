"""From rows of files to reports: dates, ids, cells that stand for other values."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from models.files.reading import open_file
from models.files.row import Row
from streams.cli.demo.run import samples
from streams.codec import BadRecord
from streams.input_reports import read_report
from streams.input_rows import AMBIGUOUS, Refusal, RowReader, usual_time
from streams.records import Report


def report(day_first: bool | None = None, **fields: Any) -> Report | Refusal:
    return RowReader("posts.csv", day_first=day_first).read(Row(1, {"id": "1", "text": "rash"} | fields))


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-03-04", datetime(2026, 3, 4)),
        ("20260304", datetime(2026, 3, 4)),
        ("2026/3/4 9:05", datetime(2026, 3, 4, 9, 5)),
        ("2026-03-04 08:00:00+00", datetime(2026, 3, 4, 8)),
        ("4.3.2026", datetime(2026, 3, 4)),
        ("04.03.2026 21:30:15", datetime(2026, 3, 4, 21, 30, 15)),
        ("13/3/2026", datetime(2026, 3, 13)),
        ("3/13/2026 12:15 AM", datetime(2026, 3, 13, 0, 15)),
        ("4/4/2026", datetime(2026, 4, 4)),
        ("March 4, 2026", datetime(2026, 3, 4)),
        ("4 March 2026 at 3:22 pm", datetime(2026, 3, 4, 15, 22)),
        ("04-Mar-2026", datetime(2026, 3, 4)),
        ("Sept 4th 2026", datetime(2026, 9, 4)),
        ("Wed, 04 Mar 2026 10:00:00 +0200", datetime(2026, 3, 4, 8)),
        ("4/13/2026 10:00 UTC", datetime(2026, 4, 13, 10)),
        ("1772611200", datetime(2026, 3, 4, 8)),
        ("1772611200000", datetime(2026, 3, 4, 8)),
        (1772611200.0, datetime(2026, 3, 4, 8)),
    ],
)
def test_usual_dates_are_read(value: object, moment: datetime) -> None:
    read = report(created_at=value)
    assert isinstance(read, Report), read
    assert read.created_at == moment.replace(tzinfo=UTC)


def test_a_date_that_may_be_two_is_refused_unless_the_user_says_which_for_the_file() -> None:
    assert report(created_at="3/4/2026") == Refusal(1, AMBIGUOUS)
    for day_first, month in ((True, 4), (False, 3)):
        read = report(day_first, created_at="3/4/2026")
        assert isinstance(read, Report) and read.created_at
        assert read.created_at.month == month
    with pytest.raises(BadRecord):
        usual_time("3/13/2026", day_first=True)


@pytest.mark.parametrize(
    "value", ["last week", "31.2.2026", "3/4/26", "2026-13-01", "4/13/2026 25:00", "46085", 46085, True]
)
def test_what_is_no_time_refuses_the_row(value: object) -> None:
    refused = report(created_at=value)
    assert isinstance(refused, Refusal) and refused.reason.startswith("created_at: ")
    assert str(value) not in refused.reason


def test_a_missing_value_is_none_and_cells_may_hold_lists_and_flags() -> None:
    read = report(created_at="NaT", drug="n/a", language="", aggregate_only="False")
    assert read == Report(id="1", text="rash")
    read = report(drug='["Zoloft", "Advil"]', aggregate_only="TRUE")
    assert isinstance(read, Report)
    assert read.stated_drugs == ("Zoloft", "Advil") and read.aggregate_only


def test_ids_are_made_of_the_content_where_the_file_has_none_and_are_the_same_again() -> None:
    data = b"text,date\nrash,2026-03-04\nhives,\nrash,2026-03-04\n"

    def ids(name: str) -> list[str]:
        reader = RowReader(name)
        read = [reader.read(row) for row in open_file(io.BytesIO(data)).rows]
        assert reader.ids_made == 3
        return [item.id for item in read if isinstance(item, Report)]

    made = ids("My posts.csv.gz")
    assert made == ids("My posts.csv")
    assert made[0] == made[2] != made[1]
    assert all(id_.startswith("My posts-") for id_ in made)
    assert not set(made) & set(ids("other.csv"))


@pytest.mark.parametrize("data", [b"id,text\n1,rash\n,hives\n", b'{"id": 1, "text": "a"}\n{"text": "b"}\n'])
def test_a_row_without_an_id_in_a_file_with_ids_is_refused(data: bytes) -> None:
    reader = RowReader("posts")
    first, second = (reader.read(row) for row in open_file(io.BytesIO(data)).rows)
    assert isinstance(first, Report) and isinstance(second, Refusal)
    assert second.reason.startswith("id: ") and reader.ids_made == 0


def test_the_samples_are_read_as_producers_send_them() -> None:
    for path in samples().values():
        reader = RowReader(path.name)
        with open_file(path) as file:
            read = [reader.read(row) for row in file.rows]
        lines = path.read_bytes().splitlines()
        assert read == [read_report(line) for line in lines]
        array = json.dumps([json.loads(line) for line in lines]).encode()
        assert [reader.read(row) for row in open_file(io.BytesIO(array)).rows] == read


def test_an_id_of_json_is_as_strict_as_on_a_topic() -> None:
    refused = report(id="a\n")
    assert isinstance(refused, Refusal) and refused.reason == "id: Value error, must be printable"
