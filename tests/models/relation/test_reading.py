"""Sentences with acronyms as the encoder reads them."""

from __future__ import annotations

import pytest

from models.relation.pairs import SentenceMention
from models.relation.reading import apart, naming, split
from models.types import ADE, DRUG, Expansion, Mention, Span

TEXT = "Pt had GIB on ASA. BP ok."
PT = Expansion(0, 2, "Pt", "patient", 1.0, "dictionary")
GIB = Expansion(7, 10, "GIB", "gastrointestinal bleeding", 0.9, "dictionary")
ASA = Expansion(14, 17, "ASA", "aspirin", 1.0, "dictionary")


def _expansion(long_form: str) -> Expansion:
    return Expansion(0, 2, "XX", long_form, 1.0, "dictionary")


def test_the_words_of_a_long_form_are_read_where_the_acronym_is() -> None:
    first, second = split([TEXT], [[PT, GIB, ASA]])
    assert first.read == ["Pt", "had", "gastrointestinal", "bleeding", "on", "aspirin", "."]
    assert first.words == [
        Span(0, 2),
        Span(3, 6),
        Span(7, 10),
        Span(7, 10),
        Span(11, 13),
        Span(14, 17),
        Span(17, 18),
    ]
    assert second.read == ["BP", "ok", "."]


def test_without_expansions_words_are_read_as_they_are_written() -> None:
    assert [s.read for s in split(["Xy b! Xz d.", "e"])] == [["Xy", "b", "!"], ["Xz", "d", "."], ["e"]]


def test_a_sentence_of_a_note_that_was_cut_into_lines_is_read_as_one() -> None:
    """Else the drug is in one sentence and its effect in another."""
    note = "She was treated with carbamazepine for trigeminal neuralgia and three\nweeks later had a rash."
    (sentence,) = split([note])
    assert sentence.read == note.replace(".", " .").split()


@pytest.mark.parametrize(
    ("long_form", "is_read"),
    [
        ("gastrointestinal bleeding", True),
        ("Stevens-Johnson syndrome", True),
        ("nausea and vomiting", True),
        ("methotrexate", True),
        ("patient", False),
        ("international normalized ratio", False),
        ("stroke volume", False),
        ("liver transplantation", False),
    ],
)
def test_long_forms_that_name_events_and_drugs_are_read(long_form: str, is_read: bool) -> None:
    assert bool(naming([_expansion(long_form)])) is is_read


def test_of_mentions_in_one_acronym_the_first_effect_stays() -> None:
    drug, effect = Mention(0, 3, "HIT", DRUG, 1.0), Mention(0, 3, "HIT", ADE, 1.0)
    later = Mention(7, 12, "fever", ADE, 1.0)
    first, second, third, fourth = (
        SentenceMention(m, place, 2 * place, "") for place, m in enumerate((drug, effect, effect, later))
    )
    assert apart([first, second, third, fourth]) == [second, fourth]
    assert apart([second, first]) == [second]
