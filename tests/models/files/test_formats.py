"""Every form of file, in every encoding and compression, gives the rows that went in."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest
from backports import zstd

from models.files.text_file import open_file
from streams.cli.demo.run import samples

ROWS: list[dict[str, Any]] = [
    {"id": f"{topic}-{row['id']}", "text": row["text"], "created_at": row.get("created_at", "2026-03-02")}
    for topic, path in samples().items()
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
]
COLUMNS = list(ROWS[0])


def delimited(separator: str) -> str:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, delimiter=separator)
    writer.writeheader()
    writer.writerows(ROWS)
    return file.getvalue()


def by_column(start: int = 0) -> dict[str, dict[str, Any]]:
    return {name: {str(i): row[name] for i, row in enumerate(ROWS, start)} for name in COLUMNS}


TEXTS: dict[str, Callable[[], str]] = {
    "CSV with commas": lambda: delimited(","),
    "CSV with semicolons": lambda: delimited(";"),
    "CSV with tabs": lambda: delimited("\t"),
    "CSV with bars": lambda: delimited("|"),
    "JSON Lines": lambda: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS),
    "JSON array": lambda: json.dumps(ROWS, ensure_ascii=False),
    "JSON array, pretty": lambda: json.dumps(ROWS, indent=2),
    "JSON objects": lambda: "\n".join(json.dumps(row, indent=2) for row in ROWS),
    "JSON table, columns": lambda: json.dumps(by_column()),
    "JSON table, rows": lambda: json.dumps({str(i): row for i, row in enumerate(ROWS)}, indent=1),
    "JSON table, split": lambda: json.dumps(
        {"columns": COLUMNS, "index": list(range(len(ROWS))), "data": [list(r.values()) for r in ROWS]}
    ),
    "JSON table, lists": lambda: json.dumps({name: [row[name] for row in ROWS] for name in COLUMNS}),
    "JSON table, envelope": lambda: json.dumps({"count": len(ROWS), "results": ROWS}),
}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "bzip2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
}
WIDE = ["utf-16", "utf-16-le", "utf-16-be", "utf-32"]


#: Each encoding as it is, and each compression.
PACKED = [(encoding, "") for encoding in ("utf-8", "utf-8-sig", *WIDE)]
PACKED += [("utf-8", compression) for compression in COMPRESSIONS if compression] + [("utf-16", "gzip")]


@pytest.mark.parametrize(("encoding", "compression"), PACKED)
@pytest.mark.parametrize("form", TEXTS)
def test_a_text_gives_its_rows(form: str, encoding: str, compression: str, tmp_path: Path) -> None:
    path = tmp_path / "anything.dat"
    path.write_bytes(COMPRESSIONS[compression](TEXTS[form]().encode(encoding)))
    with open_file(path) as file:
        assert [row.content for row in file.rows] == ROWS
        wide = encoding.upper() if encoding in WIDE else ""
        assert file.described() == ", ".join(
            p for p in (form.split(",", maxsplit=1)[0], wide, compression) if p
        )


@pytest.mark.parametrize("form", ["CSV with semicolons", "JSON Lines", "JSON array", "JSON table, lists"])
def test_a_text_in_windows_1252_gives_its_rows_and_says_so(form: str) -> None:
    text = TEXTS[form]().replace("weeks", "Übelkeit “weeks” €")
    data = text.encode("cp1252", "ignore")
    with open_file(io.BytesIO(data)) as file, open_file(io.BytesIO(data.decode("cp1252").encode())) as same:
        assert [row.content for row in file.rows] == [row.content for row in same.rows]
        assert file.guessed_encoding and "Windows-1252" in file.described()
        assert not same.guessed_encoding


def workbook(rows: Sequence[dict[str, Any]], path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["notes"])
    sheet = book.create_sheet("Posts")
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append(list(row.values()))
    book.save(path)


def parquet(rows: Sequence[dict[str, Any]], path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (id VARCHAR, text VARCHAR, created_at VARCHAR)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [list(row.values()) for row in rows])
    connection.table("t").write_parquet(str(path))


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize(
    ("form", "write"), [("Excel, sheet 'Posts'", workbook), ("Parquet", parquet)], ids=["xlsx", "parquet"]
)
def test_a_table_gives_its_rows(
    form: str, write: Callable[[Sequence[dict[str, Any]], Path], None], compression: str, tmp_path: Path
) -> None:
    write(ROWS, tmp_path / "table")
    path = tmp_path / "posts.dat"
    path.write_bytes(COMPRESSIONS[compression]((tmp_path / "table").read_bytes()))
    with open_file(path) as file:
        assert [row.content for row in file.rows] == ROWS
        assert file.described() == ", ".join(p for p in (form, compression) if p)
    with path.open("rb") as pipe, open_file(pipe) as file:
        assert [row.content for row in file.rows] == ROWS


def test_a_parquet_name_is_no_pattern_and_its_values_keep_their_meaning(tmp_path: Path) -> None:
    path = tmp_path / "a[1]*.parquet"
    query = (
        "SELECT 7 AS id, 'rash' AS body, TIMESTAMPTZ '2026-03-04 10:00:00+02' AS date, 'NaN'::FLOAT AS f, "
        "['Zoloft', 'Advil'] AS drug, NULL AS nothing"
    )
    duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    duckdb.execute(f"COPY (SELECT 8 AS id, 'x' AS body) TO '{tmp_path}/a1x.parquet' (FORMAT parquet)")
    with open_file(path) as file:
        (row,) = file.rows
    assert row.content == {
        "id": 7,
        "text": "rash",
        "created_at": "2026-03-04 08:00:00+00",
        "drug": ["Zoloft", "Advil"],
    }


def test_line_feeds_quotation_marks_and_separators_of_a_cell_stay(tmp_path: Path) -> None:
    text = 'a; "rash",\tafter\r\ntwo | days \u2028 éß😀'
    for separator in ",;\t|$^~":
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=separator).writerows([["id", "text"], ["1", text], ["2", "x"]])
        with open_file(io.BytesIO(file.getvalue().encode())) as opened:
            assert [row.content for row in opened.rows] == [
                {"id": "1", "text": text},
                {"id": "2", "text": "x"},
            ]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"sep=;\nid;text\n1;rash\n", [{"id": "1", "text": "rash"}]),
        (b"caseid$text\r\n7$rash, hives\r\n", [{"caseid": "7", "text": "rash, hives"}]),
        (b"id,text\n1,cost $5 or ^ ~\n", [{"id": "1", "text": "cost $5 or ^ ~"}]),
        (b"text\nrash, and hives\nnone\n", [{"text": "rash, and hives"}, {"text": "none"}]),
        (b'ID\tReview\n1\t"Best" drug\n', [{"id": "1", "text": '"Best" drug'}]),
        (b'id,text\n1,"a \\"rash\\", x"\n', [{"id": "1", "text": 'a "rash", x'}]),
        (b"id,text\r1,rash\r2,hives\r", [{"id": "1", "text": "rash"}, {"id": "2", "text": "hives"}]),
        (b"id,text,\n1,rash,\n", [{"id": "1", "text": "rash"}]),
        (b"\n\nid,text\n\n1,rash\n", [{"id": "1", "text": "rash"}]),
        (b"", []),
        (b"id,text\n", []),
    ],
    ids=["sep", "FDA", "their marks in a text", "one column", "unquoted tabs", "backslashes",
         "carriage returns", "empty column", "blank", "", "header"],
)  # fmt: skip
def test_forms_of_csv(data: bytes, rows: list[dict[str, str]]) -> None:
    with open_file(io.BytesIO(data)) as file:
        assert [row.content for row in file.rows] == rows
