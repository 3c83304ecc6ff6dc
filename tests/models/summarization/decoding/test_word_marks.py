"""Which pieces continue a word, by each family's tokenizer, and the text that pieces are written as."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.encoder.model import Encoder
from models.summarization.decoding.detokenization import written
from models.summarization.decoding.word_marks import word_marks
from tests.models.tiny_families import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_the_pieces_inside_words_continue_them_and_text_is_written_back(family: str, tmp_path: Path) -> None:
    encoder = Encoder.load(FAMILIES[family](tmp_path))
    (split,) = encoder.split([["zoloft", "hurts", "!"]])
    marks = word_marks(encoder.tokenizer).continues_word(split.pieces)
    # The pieces of the last word, a punctuation mark, never continue one.
    assert [i for i, mark in enumerate(marks[: split.first[2]]) if not mark] == split.first[:2]
    assert not marks[split.first[1]]
    assert not marks[split.first[2]]
    assert marks[split.first[1] - 1]
    pieces = encoder.tokenizer("zoloft hurts", add_special_tokens=False)["input_ids"]
    assert written(encoder.tokenizer, pieces, "It hurts since zoloft.") == "Zoloft hurts"
