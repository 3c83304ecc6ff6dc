"""Random draws from the terminology: terms in the place of mentions, and negatives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from models.encoder.model import Encoder
from models.normalization.context_refining import marked_sentences
from models.terminology import Term
from training.normalization.data import Example, rows_by_pt

#: Nearest wrong terms that a hard negative is drawn from, and terms that are searched to find them.
HARD, NEAREST = 10, 60


class TermSampler:
    """Draws rows of a terminology; every draw comes from the generator that is passed in."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = list(terms)
        self._by_pt = rows_by_pt(self._terms)
        self._with_synonyms = [row for rows in self._by_pt.values() if len(rows) > 1 for row in rows]

    def replaced(
        self, data: Sequence[Example], share: float, context: Encoder, rng: random.Random
    ) -> list[Example]:
        """The examples with this share of the mentions replaced by a term; the other terms of its preferred
        term are its positives. So training covers terms that no training mention has.
        """
        chosen = [i for i, e in enumerate(data) if e.pieces is not None and rng.random() < share]
        if not self._with_synonyms:
            return list(data)
        rows = [rng.choice(self._with_synonyms) for _ in chosen]
        queries = [
            replace(data[i].query, surface=self._terms[row].llt) for i, row in zip(chosen, rows, strict=True)
        ]
        result = list(data)
        for i, row, mention, pieces in zip(
            chosen, rows, queries, marked_sentences(context, queries), strict=True
        ):
            right = tuple(self._by_pt[self._terms[row].pt])
            others = tuple(r for r in right if r != row)
            result[i] = Example(mention, pieces, others, others, right)
        return result

    def random_negatives(self, data: Sequence[Example], rng: random.Random) -> list[int]:
        """For each example a row whose preferred term is another."""
        return [self._wrong(e, rng) for e in data]

    def hard_negatives(
        self, data: Sequence[Example], nearest: Sequence[Sequence[int]], rng: random.Random
    ) -> list[int]:
        """The same, drawn from the first wrong ones of each example's nearest rows; a random one where none
        is wrong.
        """
        negatives = []
        for example, rows in zip(data, nearest, strict=True):
            wrong = [r for r in rows if r not in example.right_rows][:HARD]
            negatives.append(rng.choice(wrong) if wrong else self._wrong(example, rng))
        return negatives

    def _wrong(self, example: Example, rng: random.Random) -> int:
        while (row := rng.randrange(len(self._terms))) in example.right_rows:
            pass
        return row
