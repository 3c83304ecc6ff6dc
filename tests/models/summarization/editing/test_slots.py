"""What the name of a question's slot is, and what only asks for it."""

from __future__ import annotations

import pytest

from models.summarization.editing.slots import Slot, without_asking
from models.types import Span


@pytest.mark.parametrize("word", ["inherited", "hereditary", "genetic"])
def test_the_word_that_asks_behind_a_name_is_no_part_of_it(word: str) -> None:
    text = f"Is trigeminal neuralgia {word}?"
    slot = Slot(Span(3, len(text) - 1), "", 0.9, 0, "name", frozenset())
    assert without_asking(text, slot) == slot._replace(span=Span(3, 23), text="trigeminal neuralgia")


@pytest.mark.parametrize("name", ["treatment resistant depression", "treatment-refractory epilepsy"])
def test_treatment_resistant_stays_in_front_of_its_illness(name: str) -> None:
    text = f"What is the treatment for {name}?"
    for start in (text.index(name), text.index(name) + len("treatment ")):
        slot = Slot(Span(start, len(text) - 1), "", 0.9, 0, "name", frozenset())
        found = without_asking(text, slot)
        assert found is not None and found.text == name
