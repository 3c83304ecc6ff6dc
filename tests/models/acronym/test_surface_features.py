"""Surface features of long forms in an acronym's place."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.acronym.surface_features import NAMES, features, surroundings, undotted


def one_piece_if_known(text: str) -> int:
    return 1 if text.lower() in {"", "translations", "object", "direct", "tables", "acid"} else len(text)


def named(left: str, short: str, right: str, *forms: str) -> list[dict[str, float]]:
    rows = features(surroundings(left, right, short), forms, one_piece_if_known)
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def test_a_long_form_is_joined_with_the_letters_directly_after_the_acronym() -> None:
    whole, cut = named("the ", "DO", "t constructions", "Direct Object", "Direct Objec")
    assert (whole["joined_is_piece"], cut["joined_is_piece"]) == (0, 1)
    alone, broken = named("the ", "DO", " constructions", "Direct Object", "Direct Objec")
    assert (alone["end_is_piece"], broken["end_is_piece"]) == (1, 0)
    assert (broken["begins_another"], alone["begins_another"]) == (1, 0)


def test_the_time_of_a_long_word_before_the_acronym_is_bounded() -> None:
    started = time.process_time()
    assert surroundings("a" * 99_000 + " ab", "", "DO").before == "ab"
    assert time.process_time() - started < 1


def test_the_case_of_a_long_form_is_compared_with_its_neighbours() -> None:
    title, plain = named("A Study Of ", "FST", " Methods", "Finite State", "finite state")
    assert (title["titled_capitals"], plain["titled_capitals"]) == (1.0, 0.0)
    assert title["titled_next_upper"] == 1.0
    assert named("", "FST", " is", "Finite state")[0]["first_only_starts"] == 1.0


def test_articles_and_plurals_are_features() -> None:
    one, many = named("an ", "AT", " is", "acid table", "acid tables")
    assert (one["an"], many["an"], many["one_of_plural"], many["is_plural"]) == (1, 1, 1, 1)
    assert one["plural"] == 0
    assert named("the ", "AT", "s", "acid tables")[0]["plural_twice"] == 1


def test_a_long_form_that_spells_the_acronym_is_marked() -> None:
    right, wrong = named("the ", "AT", " x", "acid table", "direct object")
    assert (right["initials"], right["spelled"], right["same_first"]) == (1, 1, 1)
    assert (wrong["initials"], wrong["same_first"]) == (0, 0)


@given(st.text(max_size=20), st.text(max_size=20), st.lists(st.text(max_size=12), max_size=4))
def test_any_text_gives_one_finite_number_for_each_name(left: str, right: str, forms: list[str]) -> None:
    rows = features(surroundings(left, right, "MS"), forms, one_piece_if_known)
    assert [len(row) for row in rows] == [len(NAMES)] * len(forms)
    assert all(abs(value) < 1e4 for row in rows for value in row)


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(
    ("text", "expected"), [("P.C.P", "PCP"), ("U.S.", "US"), ("AC.1", "AC.1"), ("MS", "MS")]
)
def test_full_stops_between_single_letters_are_removed(text: str, expected: str) -> None:
    assert undotted(text) == expected
