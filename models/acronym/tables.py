"""Scores of long forms by two tables: how frequent a meaning is, and which words stand near it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from models.acronym import cues, frequencies
from models.acronym.cues import CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.questions import Question
from models.releases.manifest import Release


class Weights(NamedTuple):
    """Of the parts of a long form's score; chosen on validation rows."""

    prior: float = 1.0
    """of the logarithm of the share"""
    cues: float = 3.0
    """of the sum of the cue words that stand near"""


class TableScorer:
    """Softmax over the weighted sums of how frequent a long form is and its cue words; immutable."""

    def __init__(self, shares: SenseFrequencies, cue_words: CueWords, weights: Weights | None = None) -> None:
        self.frequencies, self.cue_words, self.weights = shares, cue_words, weights or Weights()

    @classmethod
    def load(cls, release: Release) -> TableScorer:
        """Raises ReleaseError, ValueError, KeyError or TypeError where files and configuration do not fit."""
        tables = (release.file(name) for name in (frequencies.TABLE, frequencies.COUNTS))
        shares = SenseFrequencies.load(*tables)
        cue_words = CueWords.load(release.file(cues.TABLE))
        return cls(shares, cue_words, Weights(**release.manifest.configuration["weights"]))

    def scores(self, questions: Sequence[Question]) -> list[list[float]]:
        """Of each question the share of each long form; equal shares where the tables know nothing."""
        return [self._shares(q) for q in questions]

    def _shares(self, question: Question) -> list[float]:
        short, forms = question.short_form, question.long_forms
        near = self.cue_words.scores(question.left, short, question.right, forms)
        expected = self.frequencies.shares(short, forms)
        weights = self.weights
        scores = [weights.prior * math.log(e) + weights.cues * n for e, n in zip(expected, near, strict=True)]
        exponents = [math.exp(score - max(scores)) for score in scores]
        return [exponent / sum(exponents) for exponent in exponents]
