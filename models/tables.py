"""Reads tables in text files; every error message names the file and the line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

#: Tables of the project: terminology, drugs, acronyms, and rules in a folder of their own.
DATA = Path(__file__).parent / "data"


def read_tsv(path: Path, columns: tuple[str, ...]) -> Iterable[list[str]]:
    """Rows of a TSV file with a header of `columns`, # lines left out; ValueError for an empty one."""
    lines = _lines(path)
    top = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
    if not lines or tuple(lines[top].split("\t")[: len(columns)]) != columns:
        raise ValueError(f"{path.name}: the header must begin with {', '.join(columns)}")
    for number, line in enumerate(lines[top + 1 :], top + 2):
        row = line.split("\t")
        if len(row) < len(columns) or not all(row[: len(columns)]):
            raise ValueError(f"{path.name}, line {number}: {len(columns)} filled columns are needed")
        yield row


def header(path: Path) -> list[str]:
    """The names of the columns of a tab-separated file, of which only the first line is read."""
    with path.open("rb") as file:
        return file.readline().decode("utf-8-sig", "replace").rstrip("\r\n").split("\t")


def read_separated(path: Path, separator: str, columns: int) -> Iterable[list[str]]:
    """Rows of a file without a header; ValueError where one has fewer than `columns` columns."""
    for number, line in enumerate(_lines(path), 1):
        row = line.split(separator)
        if len(row) < columns:
            raise ValueError(f"{path.name}, line {number}: needs {columns} columns separated by {separator}")
        yield row


def _lines(path: Path) -> list[str]:
    """Lines without their ends; a byte order mark, which spreadsheets write, is removed."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name}: not UTF-8: {error.reason} at byte {error.start}") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []
