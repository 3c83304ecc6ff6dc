"""Names of drug classes and regimens, in texts that may mean something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.drugs import DrugLexicon
from models.drugs.classes import BUNDLED, DrugClasses, bundled_classes, class_named, group_named
from models.tables import read_tsv

ROWS = [[*row, "", ""][:5] for row in read_tsv(BUNDLED, ("name", "kind", "class"))]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("My water pill and the beta blockers", ["diuretic", "beta blocker"]),
        ("SSRI's and an ACE-inhibitor, a blood thinner", ["SSRI", "ACE inhibitor", "blood thinner"]),
        ("GLP-1 drugs took my appetite", ["GLP-1 agonist"]),
        ("five rounds of folfox", ["FOLFOX"]),
        ("R-CHOP for my lymphoma, then CHOP", ["R-CHOP", "CHOP"]),
        ("pork chop for dinner", []),
        ("third round of the red devil, chemo is no joke", ["doxorubicin", "chemotherapy"]),
        ("Come on you red devils!", []),
        ("I went on the pill when my periods got bad", ["oral contraceptive"]),
        ("take the pill with food", []),
        ("I stopped the pill after a week, no more headaches", []),
        ("I stopped the pills, my periods are normal again", []),
        ("birth control pills make me cry", ["oral contraceptive"]),
        ("I hate this birth control", ["contraceptive"]),
        ("I use condoms for birth control", []),
        ("on bc since my last pregnancy", ["contraceptive"]),
        ("on bc I have to, my periods are bad", []),
        ("morning-after pill", ["emergency contraceptive"]),
        ("the morning after I took it", []),
        ("they put me on steroids", ["glucocorticoid"]),
        ("he's on steroids for muscle gains", ["anabolic steroid"]),
        ("it is like the flu on steroids", []),
        ("insulin on steroids", []),
        ("chemo made me sick", ["chemotherapy"]),
        ("chemo brain", []),
        ("felt like chemo", []),
        ("I take PrEP and use condoms", ["HIV pre-exposure prophylaxis"]),
        ("meal prep sunday", []),
        ("arm hurts since the jab, covid is no joke", ["vaccine"]),
        ("the shot of whisky was good", []),
        ("an antidepressant for sleep", ["antidepressant"]),
        ("its antidepressant effects", []),
        ("a non-stimulant", []),
        ("my estrogen levels", []),
    ],
)
def test_words_of_posts_are_classes_where_the_text_means_them(text: str, groups: list[str]) -> None:
    assert [group.name for _, group in bundled_classes().find(text)] == groups


def test_the_bundled_names_are_sorted_unique_and_none_is_a_drug() -> None:
    names = [row[0] for row in ROWS]
    assert len({(name.lower(), row[4]) for name, row in zip(names, ROWS, strict=True)}) == len(names) > 400
    assert names == sorted(names, key=str.lower)
    lexicon = DrugLexicon.load()
    drugs = {row[0] for row in ROWS if row[1] != "drug" and lexicon.generic(row[0])}
    assert drugs == set()


def test_members_and_products_are_generic_names_of_the_lexicon() -> None:
    known = {generic for _, generic, *_ in read_tsv(BUNDLED.parent / "drugs.tsv", ("name", "generic"))}
    members = {row[0]: row[3].split("; ") for row in ROWS if row[3]}
    assert {name: set(own) - known for name, own in members.items() if set(own) - known} == {}
    assert {row[2] for row in ROWS if row[1] == "drug"} <= known
    assert all(len(set(own)) == len(own) > 1 for own in members.values())
    folfox = group_named("FOLFOX")
    assert folfox and (folfox.kind, folfox.members) == (
        "regimen", ("leucovorin", "fluorouracil", "oxaliplatin"),
    )  # fmt: skip


def test_a_class_is_known_by_all_its_names_and_a_product_is_none() -> None:
    assert [class_named(n) for n in ("Statins", "statin", "water pill", "ACE inhibitor")] == [
        "statin", "statin", "diuretic", "ACE inhibitor",
    ]  # fmt: skip
    assert [class_named(n) for n in ("folfox", "amphetamine", "atorvastatin", "the pill", "")] == [None] * 5
    statin = group_named("statins")
    assert statin and statin.has("amlodipine/atorvastatin") and not statin.has("amlodipine")


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ("class\nstatin\n", r"classes\.tsv: the header must begin with name, kind, class"),
        ("name\tkind\tclass\nstatin\tclass\tstatin\n", "statin: no row has its members"),
    ],
)
def test_a_table_without_its_columns_or_members_is_refused(table: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "classes.tsv").write_text(table, encoding="utf-8")
    with pytest.raises(ValueError, match=error):
        DrugClasses.load(tmp_path / "classes.tsv")
