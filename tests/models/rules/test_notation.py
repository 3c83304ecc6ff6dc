"""Tables of rules: what is read, what is said about a row that cannot be read, and that every row is used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import models
from models.rules.notation import FOLDER, SHARED, Scanner, patterns, read_rules
from models.tables import read_tsv

TABLES = sorted(
    path.stem
    for path in FOLDER.glob("*.tsv")
    if path.name != SHARED and "\nkind\ttrigger" in path.read_text(encoding="utf-8")
)
#: Lists that modules give.
GIVEN = {"{named}": ["pulse"], "{valued}": ["pulse"]}
SOURCES = [path.read_text(encoding="utf-8") for path in Path(models.__file__).parent.rglob("*.py")]


def table(folder: Path, *rows: str, shared: Sequence[str] = ()) -> Path:
    for name, own in ((SHARED, shared), ("rules.tsv", rows)):
        text = "\n".join(["# A head.", "kind\ttrigger\tnote", *own]) + "\n"
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_list_stands_for_its_rows_also_within_another_list_or_shared(tmp_path: Path) -> None:
    folder = table(
        tmp_path, "{kin}\tmother\ta note", "{kin}\tsons?", "told\t{kin} said", "denied\tno {kin}\tx"
    )
    assert list(read_rules("rules", folder)) == [
        ("told", r"(?:mother|sons?)\s+said"),
        ("denied", r"no\s+(?:mother|sons?)"),
    ]
    rows = ("{who}\t{kin} of his", "{who}\the", "told\tby {who}")
    nested = table(tmp_path, *rows, shared=("{kin}\tmother", "{kin}\tson"))
    assert list(read_rules("rules", nested)) == [("told", r"by\s+(?:(?:mother|son)\s+of\s+his|he)")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("told\tby {who}", r"rules.tsv: 'by \{who\}' names \{who\}, which has no row above it"),
        ("told\t", r"rules.tsv, line 3: 2 filled columns are needed"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(read_rules("rules", table(tmp_path, row)))


def test_a_space_is_any_white_space_and_may_be_optional(tmp_path: Path) -> None:
    folder = table(tmp_path, "cause\tdue to", "cause\tcause ?:", "cause\tin[ -]law")
    cause = patterns("rules", folder=folder)["cause"]
    assert all(map(cause.fullmatch, ("due to", "Due \t to", "cause:", "cause :", "in law", "in-law")))
    assert not any(map(cause.fullmatch, ("dueto", "in  law", "in+law")))


def test_the_first_row_is_used_where_several_begin_at_a_word() -> None:
    scan = Scanner.of([("more", "no longer"), ("less", "(?:no|not)"), ("mark", ","), ("less", "never")], ",")
    found = list(scan("no longer, not noon don't no, never"))
    assert found == [("more", 0, 9), ("mark", 9, 10), ("less", 11, 14), ("less", 26, 28), ("mark", 28, 29),
                     ("less", 30, 35)]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_every_trigger_of_a_table_is_a_pattern_once_and_every_list_is_used(name: str) -> None:
    rows = list(read_rules(name, lists=GIVEN))
    for _, trigger in rows:
        re.compile(trigger)
    assert len(rows) == len(set(rows))
    cells = list(read_tsv(FOLDER / f"{name}.tsv", ("kind", "trigger")))
    lists = {row[0] for row in cells if row[0].startswith("{")}
    assert {kind for kind in lists if not any(kind in row[1] for row in cells)} == set()


def test_every_shared_list_is_used_by_some_table() -> None:
    texts = [(FOLDER / f"{name}.tsv").read_text(encoding="utf-8") for name in TABLES]
    shared = {kind for kind, *_ in read_tsv(FOLDER / SHARED, ("kind", "trigger"))}
    assert all(any(kind in text for text in texts) for kind in shared)


@pytest.mark.parametrize("path", [p for p in FOLDER.iterdir() if p.name != SHARED], ids=lambda p: p.stem)
def test_the_head_of_a_table_has_a_place_for_what_it_gains(path: Path) -> None:
    assert "\n# Gain there / harm prevented:" in path.read_text(encoding="utf-8").partition("\t")[0]


@pytest.mark.parametrize("name", TABLES)
def test_the_kinds_of_a_table_are_described_and_read(name: str) -> None:
    """By the module that reads the table, or by the name of a group; some only prevent other matches."""
    rows = list(read_rules(name, lists=GIVEN))
    kinds = {kind.removeprefix("clinical_") for kind, _ in rows}
    head = (FOLDER / f"{name}.tsv").read_text(encoding="utf-8").partition("\nkind\t")[0]
    assert set(re.findall(r"`(\w+)`", head)) >= kinds
    (reader,) = [s for s in SOURCES if f'patterns("{name}"' in s or f'read_rules("{name}"' in s]
    named = {group for _, trigger in rows for group in re.findall(r"\?P<(\w+)>", trigger)}
    assert [kind for kind in kinds - named - {"pseudo", "list"} if f'"{kind}"' not in reader] == []


#: Modules that read patterns of their own, and of what: the tables' modules are not among them.
OTHERS = {
    "acronym/cues.py": "words of a sentence",
    "acronym/model.py": "words of a sentence, a long form",
    "acronym/questions.py": "the letters of a short form",
    "assertion/triggers.py": "blanks within 300 characters",
    "case_fields/measured.py": "the type of a match alone",
    "case_fields/told.py": "the type of a match alone",
    "drugs/joined.py": "a word",
    "export/card.py": "a cell of a table",
    "files/delimited.py": "a line",
    "files/json_values.py": "blanks, the first line",
    "idiom.py": "written idioms",
    "language.py": "400 characters",
    "memory.py": "a file of the system",
    "ner/mention_rules.py": "tags of a text that `readable` has shortened",
    "normalization/measurements.py": "names of measured values",
    "normalization/nil_rule.py": "a mention",
    "normalization/polarity.py": "a mention",
    "normalization/short_forms.py": "a mention",
    "normalization/spelling.py": "a mention",
    "quantities.py": "one number",
    "reading_form/characters.py": "characters of a text",
    "reading_form/markup.py": "tags of a text",
    "reading_form/runs.py": "runs of a text",
    "reading_form/separators.py": "words of a text",
    "redaction.py": "addresses",
    "releases/remote.py": "a version",
    "rules/notation.py": "a trigger",
    "rules/sentences.py": "the type of a match alone",
    "text.py": "runs and words of a text",
    "word_parts.py": "words of a text, and the borders within",
}


def test_patterns_are_rows_of_tables_unless_what_they_read_is_bounded() -> None:
    """The parts of a question are read by patterns beside the code, in summarization."""
    folder = Path(models.__file__).parent
    using = [p.relative_to(folder) for p in folder.rglob("*.py") if "\nimport re\n" in p.read_text("utf-8")]
    assert {path.as_posix() for path in using if path.parts[0] != "summarization"} == OTHERS.keys()
