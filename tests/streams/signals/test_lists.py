"""Labels of drugs, lists of terms, and the command that keeps them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from models.files.row import UnreadableFile
from models.tables import read_tsv
from models.terminology import load as load_terms
from streams.settings import Settings
from streams.signals.lists import BUNDLED, LABELS_FILE, LISTS, load, read
from tests.streams.cli.command_line import CommandLine

#: As in the labels of TAC 2017: a row for each reaction, with its section and its lowest-level term.
LABELS = """drug,section,reaction,term
ZOLOFT,adverse reactions,felt sick,Nausea
sertraline,adverse reactions,"insomnia, initial",Sleepless
Coumadin,warnings,bleeding,Haemorrhage
no such drug,warnings,x,Nausea
Coumadin,warnings,x,no such term
,,,Nausea
Coumadin,warnings
"""


def test_a_label_is_loaded_with_each_unknown_line_named_and_what_has_no_label_stays_unknown(
    pvstream: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(LABELS, encoding="utf-8-sig")
    answer = pvstream("listed", "--load", str(file))
    assert answer.code == 1 and "3 terms in the labels of 2 drugs" in answer.one_line
    for message in (
        "line 5: unknown drug 'no such drug'", "line 6: unknown term 'no such term'", "line 7: no drug",
        "line 8: no term",
    ):  # fmt: skip
        assert message in answer.one_line
    known = load(Settings())
    assert known.is_listed("sertraline", "Nausea") is True
    assert known.is_listed("sertraline", "Insomnia") is True, "a lowest-level term is its preferred term"
    assert known.is_listed("sertraline", "Rash") is False
    assert known.is_listed("lithium", "Nausea") is None
    file.write_text("term;drug\nNausea;lithium\n")
    assert pvstream("listed", "--load", str(file)).code == 0
    known = load(Settings())
    assert (known.is_listed("lithium", "nausea"), known.is_listed("sertraline", "Nausea")) == (True, None)


def test_lists_replace_the_bundled_ones_of_their_names(pvstream: CommandLine, tmp_path: Path) -> None:
    before = load(Settings())
    assert before.of_term("agranulocytosis") == ("designated",)
    file = tmp_path / "lists.tsv"
    file.write_text("list\tterm\ndesignated\tNausea\nserious\tNausea\nmine\tNausea\n")
    answer = pvstream("listed", "--lists", str(file))
    assert answer.code == 1 and "line 4: unknown list 'mine'" in answer.one_line
    known = load(Settings())
    assert known.of_term("Nausea") == ("designated", "serious")
    assert known.of_term("Agranulocytosis") == ()
    assert known.of_term("Drug abuse") == before.of_term("Drug abuse") == ("misuse",)


@pytest.mark.parametrize("content", [b"", b"name,term\na,b\n", b"drug,drug\na,b\n", b"drug,term\n\xff\n"])
def test_a_file_that_is_no_list_is_refused_in_one_line(
    pvstream: CommandLine, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "labels.csv"
    file.write_bytes(content)
    answer = pvstream("listed", "--load", str(file))
    assert answer.code == 1 and "labels.csv" in answer.error_line
    assert not (Settings().state_folder / LABELS_FILE).exists()
    with pytest.raises(UnreadableFile, match="nowhere"):
        read(tmp_path / "nowhere", ("drug", "term"), str, {})


def test_a_damaged_file_leaves_labels_unknown(caplog: pytest.LogCaptureFixture) -> None:
    folder = Settings().state_folder
    folder.mkdir(parents=True)
    for content in ("{", "[]", '{"sertraline": 7}'):
        (folder / LABELS_FILE).write_text(content)
        assert load(Settings()).is_listed("sertraline", "Nausea") is None
    assert caplog.text.count("cannot be read") == 3


def test_bundled_lists_have_terms_of_the_terminology_and_state_their_sources() -> None:
    terms = {term.pt for term in load_terms()}
    rows = [row[:3] for row in read_tsv(BUNDLED, ("list", "term", "source"))]
    assert {name for name, *_ in rows} == {"designated", "pregnancy", "misuse"} < {*LISTS}
    assert [term for _, term, _ in rows if term not in terms] == []
    assert len({(name, term) for name, term, _ in rows}) == len(rows)


def test_a_field_with_quotes_and_line_breaks_keeps_the_number_of_its_line(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([("drug", "note", "term"), ("a", "two\nlines", "x"), ("b", "", "y")])
    found = read(file, ("drug", "term"), {"a": "a"}.get, {"x": "X"})
    assert (found.table, found.left_out) == ({"a": ["X"]}, ["line 4: unknown drug 'b'"])
