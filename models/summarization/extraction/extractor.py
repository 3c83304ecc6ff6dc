"""Extracts the short question of a message with the two rankers of a release: one chooses what the message is
about, the other which of its sentences asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from models.encoder.model import Encoder
from models.releases.manifest import Release, ReleaseError
from models.summarization.extraction import candidates, focus
from models.summarization.extraction.candidates import Candidate, candidate, has_content
from models.summarization.extraction.focus import Focus
from models.summarization.extraction.message import Message, messages
from models.summarization.extraction.ranker import LinearRanker, softmax
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.sentence_selection import all_sentences
from models.types import ShortQuestion

FOCUS_RANKER, ANSWER_RANKER = "focus_ranker.tsv", "answer_ranker.tsv"


class Topics(NamedTuple):
    """The candidates for the focus of a text, and the features of each."""

    found: list[Focus]
    features: list[list[float]]


class Answers(NamedTuple):
    """The candidates for the answer to a text, and the features of each."""

    found: list[Candidate]
    features: list[list[float]]


class Extractor:
    """Short questions made of the text's own words."""

    def __init__(
        self,
        encoder: Encoder,
        lexicons: OwnRecogniser,
        rankers: tuple[LinearRanker, LinearRanker],
        least: float,
    ) -> None:
        """`rankers`: of the focus and of the answer; `least`: probability of a focus from which on it is
        inserted.
        """
        self.encoder, self.lexicons, self.least = encoder, lexicons, least
        self.focus_ranker, self.answer_ranker = rankers

    @classmethod
    def load(cls, release: Release, encoder: Encoder) -> Extractor:
        """Raises ReleaseError where the weights are of other features."""
        lexicons = OwnRecogniser.load(release)
        try:
            rankers = (
                LinearRanker.load(release.file(FOCUS_RANKER), focus.FEATURES),
                LinearRanker.load(release.file(ANSWER_RANKER), candidates.FEATURES),
            )
            return cls(encoder, lexicons, rankers, float(release.manifest.configuration["least_focus"]))
        except (KeyError, ValueError, TypeError) as error:
            raise ReleaseError(f"{release.version}: {error}") from None

    def extract(self, texts: Sequence[str]) -> list[ShortQuestion]:
        """The best answer to each text; its score is its probability among the candidates."""
        read = messages(self.encoder, self.lexicons, texts)
        return [
            self._answer(message, self._focus(about))
            for message, about in zip(read, topics(self.encoder, read), strict=True)
        ]

    def _answer(self, message: Message, about: Focus | None) -> ShortQuestion:
        found, rows = answers(message, about)
        probabilities = softmax(self.answer_ranker.scores(rows))
        allowed = [i for i, c in enumerate(found) if has_content(c, message.text)] or range(len(found))
        best = max(allowed, key=lambda i: round(probabilities[i], 9))
        chosen, score = found[best], round(probabilities[best], 4)
        short = ShortQuestion(chosen.text, "extractive", score, chosen.sentence.start, chosen.sentence.end)
        if chosen.focus is None:
            return short
        span = chosen.focus.span
        return replace(short, focus=chosen.focus.text, focus_start=span.start, focus_end=span.end)

    def _focus(self, about: Topics) -> Focus | None:
        """The most probable focus if it is probable enough."""
        best, probability = most_probable(self.focus_ranker, about)
        return None if best is None or probability < self.least else about.found[best]


def most_probable(ranker: LinearRanker, about: Topics) -> tuple[int | None, float]:
    """The position of the most probable focus, and its probability; None, 0 where there is no candidate."""
    probabilities = softmax(ranker.scores(about.features))
    best = max(range(len(probabilities)), key=lambda i: round(probabilities[i], 9), default=None)
    return best, 0.0 if best is None else probabilities[best]


def topics(encoder: Encoder, read: Sequence[Message]) -> list[Topics]:
    """What each message may be about. The names are encoded alone: in their context all are alike."""
    found = [focus.candidates(message) for message in read]
    names = iter(encoder.embed([f.text for own in found for f in own]).unbind())
    return [
        Topics(own, focus.features(message.text, own, [message.cosine(next(names)) for _ in own]))
        for message, own in zip(read, found, strict=True)
    ]


def answers(message: Message, about: Focus | None) -> Answers:
    """The answers that a message with this focus offers, at least one."""
    found = [candidate(message.text, s, about) for s in all_sentences(message.text)]
    cosines = message.cosines([[c.part, *([c.focus.span] if c.focus else [])] for c in found])
    return Answers(found, candidates.features(message, found, cosines, about))
