"""What `pvstream query` prints."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from streams.store.duckdb_file import DuckDatabase
from tests.streams.cli.command_line import CommandLine


@pytest.fixture
def query(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[CommandLine]:
    """The command line with a store that is empty."""
    path = tmp_path / "events.duckdb"
    with closing(DuckDatabase(path, write=True)):
        pass
    pvstream = CommandLine(monkeypatch, capsys)
    pvstream.set("PV_DATABASE", str(path))
    yield pvstream


TEXTS = "SELECT '=1+1' AS t, '@user took -5' AS u, -5 AS n, -0.5 AS d, 'a=1' AS p, NULL AS e"


def test_csv_has_no_formula_and_json_has_texts_and_every_value_as_they_are(query: CommandLine) -> None:
    head, row = csv.reader(query("query", "--csv", TEXTS).out.splitlines())
    assert head == list("tundpe")
    assert row == ["'=1+1", "'@user took -5", "-5", "-0.5", "a=1", ""]
    found = json.loads(query("query", "--json", TEXTS).out)
    assert (found["t"], found["u"], found["n"]) == ("=1+1", "@user took -5", -5)
    sql = "SELECT histogram(x) AS h, 1000000000000000000::HUGEINT * 1000 AS s FROM (VALUES (7), (7)) AS t(x)"
    found = json.loads(query("query", "--json", sql).out)
    assert found == {"h": {"7": 2}, "s": "1000000000000000000000"}
    refused = query("query", "--json", "SELECT 1 AS a, 2 AS a")
    assert (refused.code, refused.out) == (2, "") and "two columns are named 'a'" in refused.one_line


@pytest.mark.parametrize("sql", ["", "/* SELECT 1 */"])
def test_a_query_without_a_statement_ends_with_one_line(query: CommandLine, sql: str) -> None:
    answer = query("query", sql)
    assert answer.code and answer.error_line.endswith("there is no statement")
