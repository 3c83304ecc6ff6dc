"""Files that are something else end with one line; damaged ones lose no row without a word."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import duckdb
import openpyxl
import pytest
from backports import zstd

from models.files.columns import Columns
from models.files.json_values import MAX_WHOLE
from models.files.row import MAX_LINE, Row, UnknownColumn, UnreadableFile
from models.files.text_file import open_file


def rows_of(data: bytes, columns: Columns | None = None, encoding: str | None = None) -> list[Row]:
    return list(open_file(io.BytesIO(data), columns, encoding).rows)


def archive(*members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        for member in members:
            zipped.writestr(member, "x")
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "is_"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF"),
        (archive("word/document.xml"), "a Word document"),
        (archive("content.xml", "mimetype"), "OpenDocument"),
        (archive("posts.csv"), "zip archive with 1 files; unpack"),
        (archive("xl/workbook.xml"), "damaged Excel"),
        (b"PK\x03\x04cut off", "damaged zip"),
        (b"PAR1 cut off", "damaged or encrypted Parquet"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), ".xls"),
        (b"<!DOCTYPE html>\n<html></html>", "web page"),
        (b"\xef\xbb\xbf  <HTML>", "web page"),
        (b'<?xml version="1.0"?><a/>', "XML"),
        (b"\x89PNG\r\n\x1a\n" + bytes(90), "picture"),
        (bytes(range(256)) * 9, "binary file of an unknown kind"),
        (gzip.compress(b"%PDF-1.7"), "a PDF"),
        (b"a,b\n1,2\n", "the columns 'a', 'b', none of which"),
        (b"a patient wrote a very long secret line about a rash\nand more\n", "no line with the names"),
        (b"id,body,comment\n1,a,b\n", "it may be the columns 'comment', 'body'"),
        (b"text,text\n1,2\n", "several columns of one name"),
        (b'{"id": 1, "words": "rash"}\n', "the columns 'id', 'words', none of which"),
        (b'{"words": {"0": "rash"}}', "the columns 'words', none of which"),
        (b'{\n"text": {"0": "rash"}\n', "is no JSON"),
        (b'{"text": {"0": "rash"}, "x": "' + b"y" * MAX_WHOLE + b'"}', "128 MiB"),
    ],
    # Not by the bytes: an archive holds the time at which it was made, which differs between processes.
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_what_is_something_else_is_named_in_one_line(data: bytes, is_: str, tmp_path: Path) -> None:
    path = tmp_path / "posts.csv"
    path.write_bytes(data)
    with pytest.raises(UnreadableFile) as refused:
        open_file(path)
    assert str(refused.value).startswith("posts.csv")
    assert is_ in str(refused.value)
    assert "\n" not in str(refused.value) and "secret" not in str(refused.value)


def test_columns_are_found_by_name_without_case_or_as_chosen() -> None:
    data = b"Post ID,Free-Text,Review Date,Drug Name,Condition,Body\n7,rash,2026-03-04,Zoloft,low mood,hand\n"
    chosen = Columns({"text": "free-text"}, ["language"])
    assert rows_of(data, chosen)[0].content == {
        "id": "7",
        "text": "rash",
        "created_at": "2026-03-04",
        "drug": "Zoloft",
        "indication": "low mood",
        "Body": "hand",
    }
    data = b'{"text": "rash", "indication": "gout", "reason": "asked", "condition": "x"}\n'
    assert rows_of(data)[0].content == json.loads(data)
    (row,) = rows_of(data, Columns({"indication": "condition"}))
    assert row.content == {
        "text": "rash", "column_indication": "gout", "reason": "asked", "indication": "x",
    }  # fmt: skip
    data = b'{"id": 1, "text": "title", "comment": "rash"}\n'
    assert rows_of(data)[0].content == {"id": 1, "text": "title", "comment": "rash"}
    (row,) = rows_of(data, Columns({"text": "comment"}))
    assert row.content == {"id": 1, "text": "rash", "column_text": "title"}


def test_a_chosen_column_that_is_not_there_is_an_error_of_the_user() -> None:
    for data in (b"id,text\n1,rash\n", b'{"id": 1, "body": "rash"}\n'):
        with pytest.raises(UnknownColumn, match="no column 'commnt' for text"):
            rows_of(data, Columns({"text": "commnt"}))


def test_every_line_of_a_damaged_csv_is_read_or_refused_with_its_reason() -> None:
    lines = [
        b"id,text", "1,Übel".encode(), b"2,too,many", b"3", b'4,"open', b"5,hives", b"6,nul\0",
        b"7,\xff\xfe", "8,é".encode(),
    ]  # fmt: skip
    rows = rows_of(b"\n".join(lines))
    assert [(row.number, row.content and row.content["id"]) for row in rows] == [
        (2, "1"), (3, None), (4, None), (5, None), (6, "5"), (7, None), (8, None), (9, "8"),
    ]  # fmt: skip
    assert [row.reason for row in rows if row.content is None] == [
        "3 fields, the header has 2", "1 fields, the header has 2", "its quotation marks do not match",
        "holds a NUL character", "not in the encoding of the file",
    ]  # fmt: skip
    assert [row.original.rstrip(b"\n") for row in rows] == lines[1:]


def test_one_open_quotation_mark_takes_no_other_row_of_a_large_file() -> None:
    data = b'id,text\n0,"open\n' + b"".join(b"%d,rash\n" % i for i in range(200_000))
    rows = rows_of(data)
    assert [row.number for row in rows if row.content is None] == [2]
    assert len(rows) == 200_001


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize("form", ["CSV", "JSON Lines", "JSON array"])
def test_a_compressed_file_cut_off_gives_what_it_has(form: str, pack: Callable[[bytes], bytes]) -> None:
    wanted = [{"id": f"{i}", "text": f"rash {i * 7919 % 10007}"} for i in range(20_000)]
    texts = {
        "CSV": "id,text\n" + "".join(f"{r['id']},{r['text']}\n" for r in wanted),
        "JSON Lines": "".join(json.dumps(row) + "\n" for row in wanted),
        "JSON array": json.dumps(wanted),
    }
    packed = pack(texts[form].encode())
    rows = rows_of(packed[: len(packed) * 2 // 3])
    read = [row.content for row in rows if row.content is not None]
    assert 5_000 < len(read) < 19_000
    assert read == wanted[: len(read)]
    assert "cut off" in rows[-1].reason


def test_json_that_breaks_off_and_elements_that_are_no_record_are_refused() -> None:
    for tail in (b'{"id": 2, "te', b'{"id": 2} oops', b"", b'{"id": 2, "text": "x"}] more'):
        rows = rows_of(b'[{"id": 1, "text": "rash"}, ' + tail)
        assert rows[0].content == {"id": 1, "text": "rash"}
        assert rows[-1].content is None and rows[-1].reason
    deep = "[" * 100_000 + "]" * 100_000
    data = (
        '[{"text": "rash"}, 7, {"text": "\\ud83d"}, {"text": "' + "x" * (MAX_LINE + 1) + '"}, {"text": "x"}'
    )
    rows = rows_of(data.encode() + b"]")
    assert [row.content is None for row in rows] == [False, True, True, True, False]
    assert rows_of(f'[{{"text": "rash"}}, {deep}]'.encode())[-1].reason


def test_the_encoding_may_be_named_and_a_wrong_one_refuses_rows() -> None:
    text = "id,text\n1,сыпь после таблетки\n"
    (row,) = rows_of(text.encode("cp1251"), encoding="cp1251")
    assert row.content == {"id": "1", "text": "сыпь после таблетки"}
    assert rows_of(text.encode("cp1251"), encoding="utf-8")[0].content is None
    with pytest.raises(UnreadableFile, match="no encoding"):
        rows_of(text.encode(), encoding="no-such")


def test_a_workbook_keeps_dates_and_numbers_and_leaves_out_what_is_no_value(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (
        [],
        ["id", "comment", "date", None],
        [1.0, "rash", datetime(2026, 3, 4, 10, 30), "x"],
        [],
        [2, "#N/A", datetime(2026, 3, 4)],
    ):
        book.active.append(row)
    book.save(tmp_path / "posts.xlsx")
    with open_file(tmp_path / "posts.xlsx") as file:
        assert [(row.number, row.content) for row in file.rows] == [
            (3, {"id": 1, "text": "rash", "created_at": "2026-03-04T10:30:00", "column_4": "x"}),
            (5, {"id": 2, "created_at": "2026-03-04"}),
        ]


def test_a_damaged_parquet_file_says_which_rows_are_lost(tmp_path: Path) -> None:
    path = tmp_path / "posts.parquet"
    query = "SELECT i AS id, md5(i::VARCHAR) || md5((i + 1)::VARCHAR) AS text FROM range(50_000) AS t(i)"
    duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 10000)")
    data = bytearray(path.read_bytes())
    middle = len(data) * 2 // 3
    data[middle : middle + 40_000] = bytes(40_000)
    path.write_bytes(data)
    with open_file(path) as file:
        rows = list(file.rows)
    assert rows[-1].content is None and "50000" in rows[-1].reason
    assert [row.content["id"] for row in rows[:-1] if row.content] == list(range(len(rows) - 1))


def test_a_bomb_is_read_in_little_memory() -> None:
    for pack in (gzip.compress, zstd.compress):
        bomb = pack(b'{"id": 1, "text": "rash"}\n' + b" " * (200 << 20) + b'\n{"id": 2, "text": "x"}\n')
        tracemalloc.start()
        rows = rows_of(bomb)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert [row.content is None for row in rows] == [False, True, False]
        assert peak < 30 << 20
