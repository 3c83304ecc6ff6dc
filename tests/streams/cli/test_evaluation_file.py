"""Files of a user for `evaluate`: every form gives the same rows, and scores are of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import orjson
import pytest
from backports import zstd

from models.files.row import UnreadableFile
from streams.cli.evaluation_file import marked_rows
from streams.cli.input import how_to_read
from tests.streams.cli.command_line import CommandLine
from training.evaluation.evaluate import FILE_FIELDS, gold_of

HEAD = ("Comment", "reaction", "drug")
TABLE = [
    ("Zoloft\u2019s gift: a rash, and I was sick", "Rash | Vomiting", "sertraline"),
    ("nothing; so far", "", "escitalopram"),
]
ROWS = [
    {"text": TABLE[0][0], "drug": "sertraline", "terms": ("Rash", "Vomiting")},
    {"text": TABLE[1][0], "drug": "escitalopram", "terms": ()},
]


def separated(by: str) -> str:
    return "".join(by.join(f'"{cell}"' for cell in row) + "\n" for row in (HEAD, *TABLE))


def objects() -> list[dict[str, Any]]:
    return [dict(zip(HEAD, row, strict=True)) for row in TABLE]


def workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (HEAD, *TABLE):
        book.active.append(row)
    book.save(path)


def parquet(path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (Comment VARCHAR, reaction VARCHAR[], drug VARCHAR)")
    cells = [(text, [n for n in terms.split("|") if n], drug) for text, terms, drug in TABLE]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", cells)
    connection.table("t").write_parquet(str(path))


def columns() -> str:
    return json.dumps({name: {str(i): row[name] for i, row in enumerate(objects())} for name in HEAD})


FORMS: dict[str, Callable[[Path], object]] = {
    "CSV with commas": lambda p: p.write_text(separated(",")),
    "CSV with tabs": lambda p: p.write_text(separated("\t")),
    "CSV with semicolons, UTF-16": lambda p: p.write_text(separated(";"), encoding="utf-16"),
    "CSV with semicolons, Windows-1252": lambda p: p.write_text(separated(";"), encoding="cp1252"),
    "Excel, sheet 'Sheet'": workbook,
    "Parquet": parquet,
    "JSON Lines": lambda p: p.write_text("".join(json.dumps(row) + "\n" for row in objects())),
    "JSON array": lambda p: p.write_text(json.dumps(objects())),
    "JSON array ": lambda p: p.write_text(json.dumps(objects(), indent=2)),
    "JSON table": lambda p: p.write_text(columns()),
    "CSV with commas, gzip": lambda p: p.write_bytes(gzip.compress(separated(",").encode())),
    "JSON array, zstd": lambda p: p.write_bytes(zstd.compress(json.dumps(objects()).encode())),
}


def rows_of(path: Path, task: str, *columns: str) -> tuple[list[dict[str, Any]], int]:
    reading = how_to_read(columns, None, None, None, FILE_FIELDS[task])
    return marked_rows(path, reading, FILE_FIELDS[task], partial(gold_of, task), 0)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_file_gives_the_same_posts(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FORMS[form](tmp_path / "posts")
    assert rows_of(tmp_path / "posts", "posts", "terms=reaction") == (ROWS, 0)
    described = capsys.readouterr().err.replace("read as ", "").splitlines()
    assert form.strip() in ("JSON Lines", *described)


def test_a_mention_needs_a_term_and_a_question_its_short_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    told = {
        "text": "I cannot sleep at all",
        "mention": "cannot sleep",
        "terms": ["Insomnia"],
        "summary": "Why?",
    }
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in (told, {"text": "x", "terms": [], "summary": 3}))
    )
    gold = {"text": told["text"], "drug": None}
    expected = gold | {"mention": "cannot sleep", "terms": ("Insomnia",)}
    assert rows_of(path, "normalization") == ([expected], 1)
    assert rows_of(path, "summarization") == ([gold | {"summary": "Why?"}], 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "text,reaction\nx,Rash\n",
            "posts.csv, read as CSV with commas, has no terms of any text: name them ",
        ),
        ("comment,terms\nx,Rash\n\n", None),
        (
            "words,terms\nx,Rash\n",
            "has the columns 'words', 'terms', none of which is known to hold the texts",
        ),
        ("%PDF-1.7\nx\n", "posts.csv"),
        ('{"text": 1}\n{"terms": []}\n', "posts.csv: every row is refused"),
    ],
)
def test_one_line_says_what_the_file_is_and_what_to_do(
    content: str, said: str | None, tmp_path: Path
) -> None:
    (tmp_path / "posts.csv").write_text(content)
    if said is None:
        assert rows_of(tmp_path / "posts.csv", "posts")[0][0]["terms"] == ("Rash",)
        return
    with pytest.raises(UnreadableFile) as refused:
        rows_of(tmp_path / "posts.csv", "posts")
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_mentions_of_a_file_are_evaluated_and_what_is_refused_is_counted(
    pvstream: CommandLine, tmp_path: Path
) -> None:
    path, result, rejected = (tmp_path / name for name in ("codes.tsv", "scores.json", "rejected.jsonl"))
    rows = ["verbatim\tllt", "Nausea\tNausea", "Rash\tPain", *(f"word {i}\t" for i in range(13))]
    path.write_text("\n".join(rows) + "\n")
    options = ("--column", "text=verbatim", "--column", "terms=llt", "--json", result, "--rejected", rejected)
    answer = pvstream("evaluate", "normalization", "--data", path, *options)
    assert (answer.code, answer.err.count(" refused: no terms")) == (1, 11)
    assert "codes.tsv: 13 refused: no terms" in answer.err
    assert [orjson.loads(line)["line"] for line in rejected.read_bytes().splitlines()] == list(range(4, 17))
    scores = orjson.loads(result.read_bytes())
    assert (scores["data"], scores["split"], scores["records"]) == ("codes.tsv", "file", 2)
    assert (scores["scores"]["acc@1"], scores["scores"]["exact"]) == (0.5, 0.5)
    assert not any(name.endswith("seen") for name in scores["scores"])
    assert (
        "is read for posts, normalization, summarization"
        in pvstream("evaluate", "ner", "--data", path).one_line
    )
