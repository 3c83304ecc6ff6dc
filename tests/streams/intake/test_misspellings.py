"""Single slips in drug names are found; words of the language, short names and other slips are not."""

from __future__ import annotations

import pytest

from streams.intake.filter import Terms, drug_terms
from streams.intake.misspellings import misspellings


@pytest.mark.parametrize(
    "slip",
    ["lisinapril", "doxycylcine", "cymbaltta", "trimethaprim", "roacutane", "sertralin", "escitalopran"],
)
def test_a_single_slip_in_a_long_name_is_found(slip: str) -> None:
    found = Terms(drug_terms()).occur_in(f"day 3 of {slip}.")
    assert found is (slip != "escitalopran"), "an n for an m is no slip that is looked for"


def test_words_of_the_language_names_and_slips_in_short_names_are_left_out() -> None:
    made = misspellings(["Concerta", "tensionn", "prozac", "sertraline"])
    assert not {"concert", "tension", "prozacc", "sertraline", "concerta"} & made
    assert {"sertralline", "sertrlaine", "zertraline", "concertta"} & made == {
        "sertralline", "sertrlaine", "concertta",
    }  # fmt: skip
