"""What counts as right where a release reads a text as a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from benchmarks.acronym.as_used import (
    NOTHING,
    RECORDS,
    RIGHT,
    WRONG,
    labelled_verdicts,
    usual_verdicts,
    verdicts,
)
from benchmarks.acronym.rare_senses import sentences_of
from models.types import Expansion, LongForm, Span
from training.evaluation.acronym import Row

TEXT = "the PE was large"


class Writer:
    """Writes one long form at PE in every text, or none; undecided where it has a candidate."""

    def __init__(self, long_form: str | None, candidates: tuple[LongForm, ...] = ()) -> None:
        self.long_form, self.candidates = long_form, candidates

    def predict(self, batch: Sequence[str]) -> list[list[Expansion]]:
        if self.long_form is None:
            return [[] for _ in batch]
        return [[Expansion(4, 6, "PE", self.long_form, 0.9, "dictionary", self.candidates)] for _ in batch]


@pytest.mark.parametrize(
    ("gold", "written", "verdict"),
    [
        ("pulmonary embolism", "Pulmonary embolisms", RIGHT),
        ("pulmonary embolism", "pleural effusion", WRONG),
        ("pulmonary embolism", None, NOTHING),
        ("PE", None, RIGHT),
        ("PE", "pleural effusion", WRONG),
    ],
)
def test_a_row_is_right_if_its_sense_is_written(gold: str, written: str | None, verdict: str) -> None:
    model: Any = Writer(written)
    assert verdicts(model, [Row(TEXT, Span(4, 6), (gold, "other"), gold)]) == [verdict]


def test_an_undecided_acronym_is_left_as_it_is() -> None:
    model: Any = Writer("pulmonary embolism", (LongForm("pulmonary embolism", 0.9),))
    rows = [Row(TEXT, Span(4, 6), ("pulmonary embolism",), "pulmonary embolism")]
    assert verdicts(model, rows) == [NOTHING]
    # An expansion elsewhere in the text does not count.
    elsewhere = [Row("PE is not the PE", Span(14, 16), ("pulmonary embolism",), "pulmonary embolism")]
    assert verdicts(Writer("pulmonary embolism"), elsewhere) == [NOTHING]


def test_a_labelled_acronym_is_right_if_one_of_its_long_forms_is_written() -> None:
    asked = [(TEXT, "PE", "pulmonary embolus|pulmonary embolism"), (TEXT, "DVT", "deep vein thrombosis")]
    assert labelled_verdicts(Writer("Pulmonary embolism"), asked) == [RIGHT, NOTHING]
    assert labelled_verdicts(Writer("pleural effusion"), asked) == [WRONG, NOTHING]


def test_the_baseline_takes_the_most_frequent_long_form_of_the_dictionary() -> None:
    class Known:
        dictionary: ClassVar = {"PE": ("pleural effusion", "pulmonary embolism")}

    model: Any = Known()
    asked = [(TEXT, "PE", "pulmonary embolism"), (TEXT, "PE", "pleural effusion"), (TEXT, "XYZ", "unknown")]
    assert usual_verdicts(model, asked) == [RIGHT, WRONG, NOTHING]


def test_every_labelled_acronym_is_in_its_sentence() -> None:
    asked = sentences_of(RECORDS)
    assert len(asked) == len(set(asked)) > 400
    assert all(short_form in text and long_forms for text, short_form, long_forms in asked)
