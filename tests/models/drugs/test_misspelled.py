"""Misspelled names of drugs."""

from __future__ import annotations

import pytest

from models.drugs.misspelled import generic_of_misspelling


@pytest.mark.parametrize(
    ("name", "generic"),
    [
        ("cybalta", "duloxetine"),
        ("Cymbaltas", "duloxetine"),
        ("trazdone", "trazodone"),
        ("seratraline", "sertraline"),
        ("azithomycin", "azithromycin"),
        ("risperdoine", "risperidone"),
        ("prozach", "fluoxetine"),
        ("aderol", "dextroamphetamine/amphetamine"),
        # Two edits, too short, another first letter, no word, and one edit from two drugs.
        ("citropalapram", None),
        ("zolft", None),
        ("axolotl", None),
        ("ybalta", None),
        ("cefipime", None),
        ("co-codamol 30", None),
        ("", None),
        ("chlorpro\u00e9mazine", None),
    ],
)
def test_a_word_one_edit_from_the_names_of_one_drug_is_that_drug(name: str, generic: str | None) -> None:
    assert generic_of_misspelling(name) == generic
