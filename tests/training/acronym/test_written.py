"""Sentences written for an acronym's senses: rows, dictionary, and scores as if they alone showed a sense."""

from __future__ import annotations

import pytest
import torch

from models.acronym.prototypes import WRITTEN
from models.types import Span
from training.acronym.prototypes import EncodedRows, Estimates, best_long_forms, best_mixture
from training.acronym.written import (
    extended_dictionary,
    scored_as_unseen,
    sense_parts,
    spellings,
    validation_sentences,
    with_dictionary_forms,
    written_rows,
)
from training.common.long_forms import key
from training.evaluation.acronym import Row
from training.teaching.batches import AcronymContext

DICTIONARY = {"IA": ["intra-arterial"], "MS": ["multiple sclerosis"]}
CONTEXTS = [
    AcronymContext("IA", "intraarterial", "The IA line was placed."),
    AcronymContext("IA", "intra-articular", "She had an IA injection."),
    AcronymContext("RA", "rheumatoid arthritis", "Known RA for years."),
]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("intra-arterial", "Intraarterial", True),
        ("Crohn's disease", "crohn diseases", True),
        ("mass", "mas", False),
        ("hypertension", "hypotension", False),
    ],
)
def test_spellings_of_a_long_form_have_one_key(one: str, other: str, same: bool) -> None:
    assert (key(one) == key(other)) is same


def test_the_dictionary_grows_by_what_it_has_in_no_spelling() -> None:
    assert extended_dictionary(DICTIONARY, CONTEXTS) == {
        "IA": ["intra-arterial", "intra-articular"],
        "MS": ["multiple sclerosis"],
        "RA": ["rheumatoid arthritis"],
    }
    assert DICTIONARY["IA"] == ["intra-arterial"]


def test_a_sentence_is_a_row_of_each_spelling_of_its_sense() -> None:
    dictionary = extended_dictionary(DICTIONARY, CONTEXTS)
    corpus = [Row("an IA x", Span(3, 5), ("INTRA-ARTICULAR", "x"), "x")]
    rows = written_rows(CONTEXTS, dictionary, spellings(dictionary, corpus))
    assert [(r.short_form, r.gold) for r in rows] == [
        ("IA", "intra-arterial"),
        ("IA", "intra-articular"),
        ("IA", "INTRA-ARTICULAR"),
        ("RA", "rheumatoid arthritis"),
    ]
    assert rows[0].senses == ("intra-arterial", "intra-articular")


def test_rows_get_the_further_long_forms_of_the_dictionary() -> None:
    row = Row("an I.A. x", Span(3, 7), ("intraarterial", "x"), "x")
    (wide,) = with_dictionary_forms([row], extended_dictionary(DICTIONARY, CONTEXTS))
    assert wide.senses == ("intraarterial", "x", "intra-articular")


def test_the_parts_hold_every_sense_once_and_its_spellings_together() -> None:
    senses = [("A", f"form{n:02}") for n in range(10)] + [("A", "FORM-03")]
    parts = sense_parts(senses, 0)
    assert sorted(s for part in parts for s in part) == sorted(senses)
    assert all((("A", "form03") in part) == (("A", "FORM-03") in part) for part in parts)


def test_a_sense_of_which_only_written_sentences_are_left_is_scored_by_these() -> None:
    """The corpus shows x near (1, 0) and y near (0, 1); written sentences show y, and are farther away."""
    senses = ("x", "y")
    corpus = [Row("PD", Span(0, 2), senses, "x")] * 3 + [Row("PD", Span(0, 2), senses, "y")] * 3
    near = torch.tensor([[1.0, 0.1]] * 3 + [[1.0, 0.9]] * 3)
    casi = EncodedRows("casi", corpus, [[0.0, 0.0]] * 6, near)
    shown = [Row("PD", Span(0, 2), senses, "y")]
    written = EncodedRows(WRITTEN, shown, [[0.0, 0.0]], torch.tensor([[0.0, 1.0]]))
    scored = scored_as_unseen(casi, [written], {("PD", "y")}, Estimates(), 0)
    assert [s.row.gold for s in scored] == ["y"] * 3
    assert [s.only_written.tolist() for s in scored] == [[False, True]] * 3
    # The vectors of y are nearer to x than to the written sentence unless that is raised.
    (first,) = {tuple(s.similarity.tolist()) for s in scored}
    assert first[0] > first[1]
    mixture = best_mixture({"casi": scored})
    assert mixture.written > 0
    assert best_long_forms(scored, mixture) == ["y"] * 3


def test_the_sentences_for_validation_have_a_sense_of_the_dictionary() -> None:
    dictionary = {"LFT": ["lung function test", "liver function test"], "CT": ["computed tomography"]}
    rows = validation_sentences(dictionary)
    assert rows
    # CT has one long form only.
    assert {(row.short_form, row.gold) for row in rows} == {("LFT", "liver function test")}
    assert all(row.senses == ("lung function test", "liver function test") for row in rows)
