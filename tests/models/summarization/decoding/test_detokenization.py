"""Word pieces written as a sentence."""

from __future__ import annotations

import pytest

from models.summarization.decoding.detokenization import detokenize


@pytest.mark.parametrize(
    ("pieces", "source", "expected"),
    [
        ("what is met ##form ##in ?", "", "What is metformin?"),
        ("is metformin safe ?", "I take Metformin daily", "Is Metformin safe?"),
        ("treatments for mrsa ?", "about MRSA please", "Treatments for MRSA?"),
        ("treatments for mrsa ?", "ABOUT MRSA PLEASE", "Treatments for mrsa?"),
        ("is tea fine ?", "Tea. I like tea", "Is tea fine?"),
        ("sjogren ' s syndrome and ehlers - danlos", "", "Sjogren's syndrome and ehlers-danlos"),
        ("find physician ( s ) , at 0 . 5 % / day", "", "Find physician(s), at 0.5%/day"),
        ("cafe au lait", "my Caf\u00e9 au lait spots", "Caf\u00e9 au lait"),
        ("where can i read about it ?", "i have it", "Where can I read about it?"),
        ("##ness", "", "##ness"),
        ("", "x", ""),
    ],
)
def test_pieces_become_a_sentence_with_the_spelling_of_the_source(
    pieces: str, source: str, expected: str
) -> None:
    assert detokenize(pieces.split(), source) == expected
