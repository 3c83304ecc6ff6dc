"""Single slips in drug names are found; words of the language, short names and other slips are not."""

from __future__ import annotations

from streams.intake.filter import Terms, drug_terms, misspellings


def test_a_single_slip_in_a_long_name_is_found() -> None:
    terms = Terms(drug_terms())
    slips = ("lisinapril", "doxycylcine", "cymbaltta", "trimethaprim", "roacutane", "sertralin")
    assert [slip for slip in slips if not terms.occur_in(f"day 3 of {slip}.")] == []
    assert not terms.occur_in("day 3 of escitalopran."), "an n for an m is no slip that is looked for"


def test_words_of_the_language_names_and_slips_in_short_names_are_left_out() -> None:
    made = misspellings(["Concerta", "tensionn", "prozac", "sertraline"])
    assert not {"concert", "tension", "prozacc", "sertraline", "concerta"} & made
    assert {"sertralline", "sertrlaine", "zertraline", "concertta"} & made == {
        "sertralline", "sertrlaine", "concertta",
    }  # fmt: skip
