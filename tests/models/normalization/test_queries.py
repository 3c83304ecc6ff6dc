from __future__ import annotations

from collections.abc import Sequence

from models.normalization.queries import query_of
from models.types import ADE, Expansion, Mention


def surface(text: str, own: str, others: Sequence[Mention] = (), expansions: Sequence[Expansion] = ()) -> str:
    effect = mention(text, own)
    mentions = sorted([*others, effect], key=lambda m: m.start)
    return query_of(text, effect, mentions, expansions).surface


def mention(text: str, own: str, label: str = ADE) -> Mention:
    start = text.index(own)
    return Mention(start, start + len(own), own, label, 0.9)


def test_an_acronym_inside_a_mention_is_replaced_by_its_long_form() -> None:
    text = "MTX for RA caused TEN and rash"
    inside = Expansion(18, 21, "TEN", "toxic epidermal necrolysis", 1.0, "text")
    elsewhere = Expansion(8, 10, "RA", "rheumatoid arthritis", 1.0, "text")
    assert surface(text, "TEN", expansions=[elsewhere, inside]) == "toxic epidermal necrolysis"
    assert surface(text, "TEN and rash", expansions=[inside]) == "toxic epidermal necrolysis and rash"
    assert surface(text, "TEN", expansions=[elsewhere]) == "TEN"


def test_a_mention_that_ends_before_its_value_is_coded_with_it() -> None:
    text = "My Blood sugar was in the 40s again"
    assert surface(text, "Blood sugar was") == "Blood sugar was in the 40s"
    assert surface(text, "sugar") == "sugar was in the 40s"
    assert surface("weight went from 150 to 190 lbs", "weight went") == "weight went from 150 to 190"
    assert surface("blood sugar 45 minutes after eating", "blood sugar") == "blood sugar"
    assert surface("rash, blood sugar of 45", "rash") == "rash"


def test_a_part_of_the_body_is_coded_with_its_effect() -> None:
    text = "tingling in arms, legs"
    tingling = mention(text, "tingling in arms")
    assert surface(text, "tingling in arms") == "tingling in arms"
    assert surface(text, "legs", [tingling]) == "tingling in legs"
