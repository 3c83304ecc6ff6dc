"""The sentences in which expansions are counted, and how they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.acronym.as_used import NOTES
from benchmarks.acronym.rare_senses import SENTENCES, read_sentences, sentences_of
from models.types import Expansion, LongForm


@pytest.mark.parametrize("table", [SENTENCES, NOTES])
def test_each_short_form_is_in_its_sentence_and_none_is_there_twice(table: Path) -> None:
    asked = sentences_of(table)
    assert all(short in sentence and all(forms.split("|")) for sentence, short, forms in asked)
    assert len({(sentence, short) for sentence, short, _ in asked}) == len(asked) >= 70


class Expander:
    """Expands the first three short forms: rightly, wrongly and undecided."""

    def predict(self, batch: Sequence[str]) -> list[list[Expansion]]:
        found: list[list[Expansion]] = [[] for _ in batch]
        for i, (_, short, forms) in enumerate(sentences_of(SENTENCES)[:3]):
            form = "side of bed" if i == 1 else forms.split("|")[0].upper()
            candidates = (LongForm(form, 0.5),) if i == 2 else ()
            found[i].append(Expansion(0, 1, short, form, 0.9, "dictionary", candidates))
        return found


def test_an_undecided_expansion_is_none_and_case_does_not_matter() -> None:
    model: Any = Expander()
    assert read_sentences(model) == (2, 1)
