"""Chooses among the summaries of decoder and templates by their predicted overlap with the right summary.

A linear model over a few features of a candidate: its score by the decoder, the score of its template, its
rank among the candidates of its writer, and its agreement with the candidates of either writer, which is
minimum Bayes risk decoding (Kumar and Byrne 2004) as a feature.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from models.summarization.decoding.generation import PointerWriter, Summary
from models.summarization.question_templates import TemplateWriter

#: The features of a candidate, in the order of the weights.
FEATURES = (
    "log_probability",
    "template_score",
    "from_decoder",
    "rank_decoder",
    "rank_template",
    "agreement_decoder",
    "agreement_templates",
    "words",
    "one",
)
#: Before the ranker is fitted, the candidate that is most probable for the decoder is chosen.
UNFITTED = (1.0, *(0.0 for _ in FEATURES[1:]))


class RankedWriter:
    """Writes with a decoder and templates, ordered by the weights of a release."""

    def __init__(self, pointer: PointerWriter, templates: TemplateWriter, weights: Sequence[float]) -> None:
        """Raises ValueError unless there is one weight for each of FEATURES."""
        if len(weights) != len(FEATURES):
            raise ValueError(f"{len(weights)} weights for {len(FEATURES)} features")
        self.pointer, self.templates, self.weights = pointer, templates, list(weights)

    def write(self, texts: Sequence[str]) -> list[list[Summary]]:
        """All candidates of each text, best first; the score is the predicted overlap, limited to 0 to 1."""
        out = []
        for own, rows in self.candidates(texts):
            values = [sum(w * x for w, x in zip(self.weights, row, strict=True)) for row in rows]
            order = sorted(range(len(own)), key=lambda i: (-round(values[i], 9), i))
            out.append([Summary(own[i], round(min(1.0, max(0.0, values[i])), 4)) for i in order])
        return out

    def candidates(self, texts: Sequence[str]) -> list[tuple[list[str], list[list[float]]]]:
        """The candidates of each text, those of the decoder first, and the FEATURES of each."""
        generated, filled = self.pointer.write(texts), self.templates.write(texts)
        probabilities = self.pointer.scores(texts, [[s.text for s in own] for own in filled])
        return [candidate_features(*own) for own in zip(generated, filled, probabilities, strict=True)]


def candidate_features(
    generated: Sequence[Summary], filled: Sequence[Summary], probabilities: Sequence[float]
) -> tuple[list[str], list[list[float]]]:
    """The candidates of one text and their FEATURES; `probabilities` are the decoder's scores of the filled
    templates.
    """
    bags = [[_bag(s.text) for s in part] for part in (generated, filled)]
    rows: list[list[float]] = []
    for bag, from_decoder, probability, template_score in [
        *((b, 1.0, s.score, 0.0) for b, s in zip(bags[0], generated, strict=True)),
        *((b, 0.0, p, s.score) for b, s, p in zip(bags[1], filled, probabilities, strict=True)),
    ]:
        agreement = [_agreement(bag, b, part) for b, part in zip(bags, (generated, filled), strict=True)]
        log_probability = math.log(max(probability, 1e-4))
        rank = len(rows) if from_decoder else len(rows) - len(generated)
        ranks = [rank * from_decoder, rank * (1 - from_decoder)]
        words = math.log1p(sum(bag.values()))
        rows.append([log_probability, template_score, from_decoder, *ranks, *agreement, words, 1.0])
    return [s.text for s in (*generated, *filled)], rows


def _agreement(bag: Counter[str], others: Sequence[Counter[str]], summaries: Sequence[Summary]) -> float:
    """Mean F1 of words with the other candidates, weighted by their scores; 0 where there is none."""
    total = sum(s.score for s in summaries)
    shared = sum(s.score * f1(bag, other) for other, s in zip(others, summaries, strict=True))
    return shared / total if total else 0.0


def f1(one: Counter[str], other: Counter[str]) -> float:
    """F1 of two bags of words, which is ROUGE-1 without stemming."""
    words = sum(one.values()) + sum(other.values())
    return 2 * (one & other).total() / words if words else 0.0


def _bag(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))
