"""The two ways to score a dictionary's long forms in a sentence: with a trained head and prototypes, or with
an encoder alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from models.acronym import cues, frequencies, prototypes
from models.acronym.cues import CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.m_network import SIZE, Head, HeadConfig, MNetwork
from models.acronym.prototypes import Mixture, Prototypes
from models.acronym.questions import Question
from models.encoder.model import Encoder
from models.releases.manifest import Release
from models.releases.tensors import check_size, read_tensors

HEAD = "head.safetensors"


class Scorer(Protocol):
    """Scores the long forms of questions."""

    def scores(self, questions: Sequence[Question]) -> list[list[float]]:
        """How well each long form of each question fits; higher is better."""


class ZeroShotScorer:
    """Cosine of the sentence and the same sentence with the long form in place of the acronym, by an encoder
    that was not trained for it.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def scores(self, questions: Sequence[Question]) -> list[list[float]]:
        texts = [q.replaced(form).text for q in questions for form in (q.short_form, *q.long_forms)]
        vectors = self.encoder.embed(texts)
        scores, anchor = [], 0
        for question in questions:
            end = anchor + 1 + len(question.long_forms)
            scores.append((vectors[anchor + 1 : end] @ vectors[anchor]).tolist())
            anchor = end
        return scores


class TrainedScorer:
    """Softmax over the long forms of the head's scores, combined with prototypes and cue words where the
    release has some.

    A single long form is not scored: its share is 1.
    """

    def __init__(
        self, network: MNetwork, known: Prototypes | None, cue_words: CueWords | None = None
    ) -> None:
        self.network = network
        self.prototypes = known
        self.cue_words = cue_words or CueWords()

    @classmethod
    def load(cls, release: Release, encoder: Encoder) -> TrainedScorer:
        """Raises ReleaseError, ValueError or RuntimeError where files and configuration do not fit."""
        configuration = release.manifest.configuration
        stored = read_tensors(release.file(HEAD))
        config = HeadConfig.from_manifest(configuration["network"])
        if config.distance:
            check_size(stored, SIZE * encoder.dimension, release.version)
        head = Head(encoder.dimension, config)
        head.load_state_dict(stored)
        known = None
        files = release.manifest.files
        if prototypes.TABLE in files:
            stated = frequencies.TABLE in files
            known = Prototypes.load(
                release.file(prototypes.TABLE),
                release.file(prototypes.VECTORS),
                Mixture(**configuration["mixture"]),
                SenseFrequencies.load(release.file(frequencies.TABLE)) if stated else None,
            )
        cue_words = CueWords.load(release.file(cues.TABLE)) if cues.TABLE in files else None
        return cls(MNetwork(encoder, head), known, cue_words)

    def scores(self, questions: Sequence[Question]) -> list[list[float]]:
        shares = [[1.0] * len(q.long_forms) for q in questions]
        ambiguous = [i for i, q in enumerate(questions) if len(q.long_forms) > 1]
        # Where prototypes decide alone, only the anchors are encoded.
        alone = [i for i in ambiguous if self._prototypes_decide(questions[i])]
        for i, near in zip(alone, self.network.near_vectors([questions[i] for i in alone]), strict=True):
            shares[i] = self._shares(questions[i], [0.0] * len(questions[i].long_forms), near)
        rest = [i for i in ambiguous if not self._prototypes_decide(questions[i])]
        scores, vectors = self.network.scores([questions[i] for i in rest])
        for i, own_scores, near in zip(rest, scores, vectors, strict=True):
            shares[i] = self._shares(questions[i], own_scores, near)
        return shares

    def _prototypes_decide(self, question: Question) -> bool:
        """Whether a long form has a prototype and the head's scores have weight 0."""
        if self.prototypes is None or self.prototypes.mixture.network:
            return False
        return self.prototypes.n_known(question.short_form, question.long_forms) > 0

    def _shares(self, question: Question, scores: Sequence[float], near: Tensor) -> list[float]:
        if self.prototypes is not None:
            q = question
            found = self.cue_words.scores(q.left, q.short_form, q.right, q.long_forms)
            scores = self.prototypes.combined(q.short_form, q.long_forms, scores, near, found)
        shares: list[float] = torch.tensor(scores).softmax(0).tolist()
        return shares
