"""From rows of files to reports: dates, ids, cells that stand for other values."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from models.files.row import Row
from models.files.text_file import open_file
from streams.cli.demo.run import samples
from streams.input_reports import read_report
from streams.input_rows import Refusal, RowReader
from streams.records import Report


def report(day_first: bool | None = None, **fields: Any) -> Report | Refusal:
    return RowReader("posts.csv", day_first=day_first).read(Row(1, {"id": "1", "text": "rash"} | fields))


def test_dates_that_are_left_out_are_counted_by_reason_and_no_row_is_refused_for_them() -> None:
    reader = RowReader("posts.csv")
    values = ["last week", "31.2.2026", "46085", 46085, "3/4/2026", "2226-01-01", True, "NaT", "4.3.2026"]
    read = [reader.read(Row(1, {"id": "1", "text": "rash", "created_at": value})) for value in values]
    assert all(isinstance(item, Report) for item in read)
    assert [item.created_at for item in read if isinstance(item, Report)] == (
        [None] * 8 + [datetime(2026, 3, 4, tzinfo=UTC)]
    )
    assert reader.dates_left_out == {"unreadable": 3, "ambiguous": 1, "sentinel": 2, "future": 1}


@pytest.mark.parametrize(("day_first", "month"), [(True, 4), (False, 3)])
def test_the_user_says_for_a_file_whether_the_day_comes_first(day_first: bool, month: int) -> None:
    read = report(day_first, created_at="3/4/2026")
    assert isinstance(read, Report) and read.created_at
    assert read.created_at.month == month and read.created_at_assumed_utc


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
