"""Tables of triggers: what is read, and what is said about a row that cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from models.relation import purpose
from models.triggers import pattern_of, read_triggers

KINDS = ("denied", "told")


def table(folder: Path, *rows: str) -> Path:
    path = folder / "triggers.tsv"
    path.write_text("\n".join(["kind\ttrigger\tnote", *rows]) + "\n", encoding="utf-8")
    return path


def test_a_list_stands_for_its_rows(tmp_path: Path) -> None:
    path = table(tmp_path, "{kin}\tmother\ta note", "{kin}\tsons?", "told\t{kin} said", "denied\tno {kin}\tx")
    assert list(read_triggers(path, KINDS)) == [
        ("told", "mother said"),
        ("told", "sons? said"),
        ("denied", "no (?:mother|sons?)"),
    ]


def test_a_list_may_name_another_one_above_it(tmp_path: Path) -> None:
    path = table(
        tmp_path, "{kin}\tmother", "{kin}\tson", "{who}\t{kin} of his", "{who}\the", "told\tby {who}"
    )
    assert list(read_triggers(path, KINDS)) == [("told", "by (?:(?:mother|son) of his|he)")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("telled\tsaid", r"triggers.tsv: unknown kind 'telled' of 'said'"),
        ("told\tby {who}", r"triggers.tsv: 'by \{who\}' names \{who\}, which has no row above it"),
        ("told\t", r"triggers.tsv, line 2: 2 filled columns are needed"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(read_triggers(table(tmp_path, row), KINDS))


def test_a_space_is_any_white_space_and_may_be_optional() -> None:
    pattern = pattern_of(["due to", "cause ?:"], r"\b", flags=re.IGNORECASE)
    assert all(pattern.search(text) for text in ("due to", "Due \t to", "cause:", "cause :"))
    assert not pattern.search("dueto")


def test_a_trigger_that_is_no_pattern_is_named() -> None:
    with pytest.raises(ValueError, match=r"the trigger 'due \(to' is no regular expression"):
        pattern_of(["after", "due (to"])


def test_every_kind_of_a_relation_has_a_trigger_and_is_described() -> None:
    assert purpose.__doc__ is not None
    described = set(re.findall(r"`(\w+)`", purpose.__doc__))
    path = Path(purpose.__file__).with_name("triggers.tsv")
    assert {kind for kind, _ in read_triggers(path, described)} == described
