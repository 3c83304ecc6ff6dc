"""The output numbers of the pointer decoder."""

from __future__ import annotations

import pytest

from models.summarization.decoding.extended_vocabulary import ExtendedVocabulary
from models.summarization.decoding.word_marks import WordMarks

CLS, SEP, UNKNOWN = 2, 3, 1
#: Pieces 21 and 22 continue a word.
VOCABULARY = ExtendedVocabulary([SEP, 10, 11], CLS, SEP, UNKNOWN, WordMarks(frozenset({21, 22})))


def test_equal_pieces_have_one_number() -> None:
    whole = [CLS, 20, 10, 21, 20, UNKNOWN, SEP]
    # 10 may be generated; 20 has the number of its first position; special and unknown pieces have none.
    assert VOCABULARY.copy_numbers(whole) == [-1, 4, 1, 6, 4, -1, -1]
    assert VOCABULARY.targets([10, 11, 20, 30], whole) == [1, 2, 4, -1, 0]
    assert [VOCABULARY.piece(n, whole) for n in (0, 1, 4, 6)] == [SEP, 10, 20, 21]


def test_the_end_must_be_the_first_generated_piece() -> None:
    with pytest.raises(ValueError, match="ends a summary"):
        ExtendedVocabulary([10, SEP], CLS, SEP)


def test_the_opening_piece_precedes_no_piece() -> None:
    assert VOCABULARY.preceding([CLS, 20, 21, SEP]) == [[-1, -1, 20, 21], [-1, -1, -1, 20]]
    assert VOCABULARY.continues_word([CLS, 20, 21, SEP]) == [False, False, True, False]
