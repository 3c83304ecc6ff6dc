"""Chooses among the summaries of several writers by what each is expected to share with the right one.

A linear model over a few numbers of a candidate: how likely the decoder finds it, what its form is worth, its
place among those of its writer, and how much it agrees with the candidates of either writer, which is the
minimum Bayes risk choice (Kumar and Byrne 2004) as a feature.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from models.summarization.generation import PointerWriter, Written
from models.summarization.question_templates import TemplateWriter

#: Names of the numbers of a candidate, in the order of the weights; the last is one.
FEATURES = (
    "log_probability",
    "worth",
    "written",
    "place_written",
    "place_forms",
    "agreement_written",
    "agreement_forms",
    "words",
    "one",
)
#: Before anything is fitted: the likeliest for the decoder.
UNFITTED = (1.0, *(0.0 for _ in FEATURES[1:]))


class RankedWriter:
    """The decoder's hypotheses and filled forms, the best first by the weights of a release."""

    def __init__(self, pointer: PointerWriter, templates: TemplateWriter, weights: Sequence[float]) -> None:
        """Raises ValueError unless there is one weight for each of FEATURES."""
        if len(weights) != len(FEATURES):
            raise ValueError(f"{len(weights)} weights for {len(FEATURES)} features")
        self.pointer, self.templates, self.weights = pointer, templates, list(weights)

    def write(self, texts: Sequence[str]) -> list[list[Written]]:
        out = []
        for found, rows in self.candidates(texts):
            values = [sum(w * x for w, x in zip(self.weights, row, strict=True)) for row in rows]
            order = sorted(range(len(found)), key=lambda i: (-round(values[i], 9), i))
            out.append([Written(found[i], round(min(1.0, max(0.0, values[i])), 4)) for i in order])
        return out

    def candidates(self, texts: Sequence[str]) -> list[tuple[list[str], list[list[float]]]]:
        """Each text's candidates and their numbers, see FEATURES."""
        written, forms = self.pointer.write(texts), self.templates.write(texts)
        filled = [[w.text for w in own] for own in forms]
        scored = self.pointer.scores(texts, filled)
        return [numbers(*rows) for rows in zip(written, forms, scored, strict=True)]


def numbers(
    written: Sequence[Written], forms: Sequence[Written], scored: Sequence[float]
) -> tuple[list[str], list[list[float]]]:
    """Candidates of one text and their numbers; `scored` is the decoder's score of each filled form."""
    bags = [[_bag(w.text) for w in part] for part in (written, forms)]
    rows: list[list[float]] = []
    for mine, source, score, worth in [
        *((b, 1.0, w.score, 0.0) for b, w in zip(bags[0], written, strict=True)),
        *((b, 0.0, s, w.score) for b, w, s in zip(bags[1], forms, scored, strict=True)),
    ]:
        agreement = [_agreement(mine, b, part) for b, part in zip(bags, (written, forms), strict=True)]
        likely = math.log(max(score, 1e-4))
        at = len(rows) if source else len(rows) - len(written)
        places = [at * source, at * (1 - source)]
        words = math.log1p(sum(mine.values()))
        rows.append([likely, worth, source, *places, *agreement, words, 1.0])
    return [w.text for w in (*written, *forms)], rows


def _agreement(mine: Counter[str], others: Sequence[Counter[str]], weights: Sequence[Written]) -> float:
    """Mean F1 of words with the others, each by its score; 0 where there is no other."""
    total = sum(w.score for w in weights)
    shared = sum(w.score * f1(mine, other) for other, w in zip(others, weights, strict=True))
    return shared / total if total else 0.0


def f1(one: Counter[str], other: Counter[str]) -> float:
    """F1 of two bags of words, ROUGE-1 without stemming."""
    words = sum(one.values()) + sum(other.values())
    return 2 * (one & other).total() / words if words else 0.0


def _bag(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))
