"""Extracts the short question of a message with the three rankers of a release: one chooses what the message
is about, one which of its sentences asks, and one which names that question lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from models.encoder.model import Encoder
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.summarization.extraction import answer_candidates, focus, focus_features, inserted_names
from models.summarization.extraction.answer_candidates import Candidate, candidate, has_content, with_leads
from models.summarization.extraction.focus import Focus
from models.summarization.extraction.inserted_names import (
    NONE,
    Insertable,
    choose,
    distinct,
    insertables,
    longest_name,
    repeats,
    with_allergy,
    with_names,
    with_topic,
)
from models.summarization.extraction.key_words import KeyWords
from models.summarization.extraction.message import Message, messages
from models.summarization.extraction.ranker import (
    ANSWER_RANKER,
    FOCUS_RANKER,
    INSERTION_RANKER,
    LinearRanker,
    softmax,
)
from models.summarization.extraction.statements import explained
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.sentence_selection import split_sentences
from models.types import ShortQuestion

#: The weights of the key words, and their name in the file.
KEY_WEIGHTS, KEY_TENSOR = "key_words.safetensors", "key_words"


class Rankers(NamedTuple):
    """The trained parts of a release."""

    focus: LinearRanker
    answer: LinearRanker
    insertion: LinearRanker
    key_words: KeyWords | None = None


class Thresholds(NamedTuple):
    """Minimum probabilities."""

    likely: float
    """of the focus, for the choice of the sentence"""
    front: float
    """of a name that is put in front of the question"""
    behind: float
    """of a name in brackets behind the question"""


class Topics(NamedTuple):
    """The candidates for the focus of a text, and the features of each."""

    found: list[Focus]
    features: list[list[float]]


class Answers(NamedTuple):
    """The candidates for the answer to a text, and the features of each."""

    found: list[Candidate]
    features: list[list[float]]


class Extractor:
    """Extracts short questions as parts of the text."""

    def __init__(
        self,
        encoder: Encoder,
        lexicons: OwnRecogniser,
        rankers: Rankers,
        thresholds: Thresholds,
    ) -> None:
        self.encoder, self.lexicons = encoder, lexicons
        self.rankers, self.thresholds = rankers, thresholds

    @classmethod
    def load(cls, release: Release, encoder: Encoder) -> Extractor:
        """Raises ReleaseError where the weights are of other features."""
        lexicons = OwnRecogniser.load(release)
        try:
            tables = (
                (FOCUS_RANKER, focus_features),
                (ANSWER_RANKER, answer_candidates),
                (INSERTION_RANKER, inserted_names),
            )
            of_focus, of_answer, of_insertion = (
                LinearRanker.load(release.file(f), m.FEATURES) for f, m in tables
            )
            weights = read_tensors(release.file(KEY_WEIGHTS))[KEY_TENSOR].float()
            rankers = Rankers(of_focus, of_answer, of_insertion, KeyWords(weights, encoder.dimension))
            least = release.manifest.configuration["thresholds"]
            thresholds = Thresholds(**{name: float(least[name]) for name in Thresholds._fields})
            return cls(encoder, lexicons, rankers, thresholds)
        except (KeyError, ValueError, TypeError) as error:
            raise ReleaseError(f"{release.version}: {error}") from None

    def extract(self, texts: Sequence[str]) -> list[ShortQuestion]:
        """The answer of each text; its score is its probability among the candidates."""
        return self.answer(messages(self.encoder, self.lexicons, texts, self.rankers.key_words))

    def answer(self, read: Sequence[Message]) -> list[ShortQuestion]:
        """The answer of each message that was read."""
        return [self._short(m, about) for m, about in zip(read, topics(self.encoder, read), strict=True)]

    def _short(self, message: Message, about: Topics) -> ShortQuestion:
        probabilities = softmax(self.rankers.focus.scores(about.features))
        found, rows = answers(message, likely(about, probabilities, self.thresholds.likely))
        chosen, score = choice(message, found, softmax(self.rankers.answer.scores(rows)))
        chosen = explained(message, found, chosen)
        offered = insertables(message, chosen, about.found, about.features, probabilities)
        inserted = sigmoids(self.rankers.insertion, offered)
        positions = choose(offered, inserted, self.thresholds.behind)
        names = distinct(longest_name(offered[i].focus, about.found) for i in positions)
        sure = bool(names) and inserted[positions[0]] >= self.thresholds.front
        text, names = self._with_names(message, chosen.text, names, sure)
        sentence = chosen.sentence
        short = ShortQuestion(text, "extractive", round(score, 4), sentence.start, sentence.end)
        if not names:
            return short
        span = names[0].span
        return replace(short, focus=names[0].text, focus_start=span.start, focus_end=span.end)

    def _with_names(
        self, message: Message, question: str, names: Sequence[Focus], sure: bool
    ) -> tuple[str, list[Focus]]:
        """The question with the names that it lacks: the first as its topic if `sure`, others in brackets."""
        if sure:
            question = with_topic(question, with_allergy(message.text, names[0]))
        others = [n for n in names[sure:] if not repeats(question, n, self.lexicons.drugs)]
        shown = [with_allergy(message.text, n) for n in others]
        return with_names(question, shown), [*names[:sure], *others]


def choice(
    message: Message, found: Sequence[Candidate], probabilities: Sequence[float]
) -> tuple[Candidate, float]:
    """The most probable candidate of those that say something, with its probability."""
    allowed = [i for i, c in enumerate(found) if has_content(c, message.text)] or range(len(found))
    best = max(allowed, key=lambda i: round(probabilities[i], 9))
    return found[best], probabilities[best]


def sigmoids(ranker: LinearRanker, offered: Sequence[Insertable]) -> list[float]:
    """The probability of each name that it belongs into the question, against leaving it out."""
    none, *scores = ranker.scores([NONE, *(o.features for o in offered)])
    return [softmax([score, none])[0] for score in scores]


def likely(about: Topics, probabilities: Sequence[float], least: float) -> Focus | None:
    """The most probable focus if it is probable enough."""
    best = max(range(len(about.found)), key=lambda i: round(probabilities[i], 9), default=None)
    return None if best is None or probabilities[best] < least else about.found[best]


def topics(encoder: Encoder, read: Sequence[Message]) -> list[Topics]:
    """The possible topics of each message; with context the vectors of names would be too alike."""
    found = [focus.candidates(message) for message in read]
    names = iter(encoder.embed([f.text for own in found for f in own]).unbind())
    return [
        Topics(own, focus_features.features(message, own, [message.cosine(next(names)) for _ in own]))
        for message, own in zip(read, found, strict=True)
    ]


def answers(message: Message, about: Focus | None) -> Answers:
    """The answers that a message with this focus offers, at least one."""
    found = with_leads([candidate(message.text, s, about) for s in split_sentences(message.text)])
    cosines = message.cosines(
        [[c.part, *([c.lead.part] if c.lead else []), *([c.focus.span] if c.focus else [])] for c in found]
    )
    return Answers(found, answer_candidates.features(message, found, cosines, about))
