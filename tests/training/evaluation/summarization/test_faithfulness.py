"""What an answer loses of the sentence that it was made from."""

from __future__ import annotations

import pytest

from models.summarization.medical_entities import Entity
from training.evaluation.summarization.faithfulness import losses

GOUT = [Entity(0, 4, "gout", False)]


@pytest.mark.parametrize(
    ("answer", "source", "entities", "lost"),
    [
        ("What causes gout?", "Please tell me the causes of gout.", GOUT, 0),
        ("What causes it?", "Please tell me the causes of gout.", GOUT, 1),
        ("What treats gout?", "What treats gout after 3 attacks?", GOUT, 1),
        ("What treats gout?", "What treats gout without surgery?", GOUT, 1),
        ("What treats gout but no rash?", "What treats gout without surgery?", GOUT, 0),
        ("What cures gout?", "The treatment of a patient with gout", GOUT, 0),
        ("What cures gout?", "What cures gout if surgery didnt?", GOUT, 1),
        ("Anything", "", [], 0),
    ],
)
def test_a_name_a_number_or_a_negation_is_lost(
    answer: str, source: str, entities: list[Entity], lost: int
) -> None:
    assert losses([answer], [source], [entities]).tolist() == [[lost]]
