"""The tags of the words of a batch from their scores, for all sentences at once."""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from models.encoder.word_pieces import WordPieces
from models.ner.decoding import OUTSIDE, Decoded, Decoding, Doubles, Floats, Numbers, best_alone, viterbi
from models.ner.mention_rules import barred_words
from models.ner.sentences import Sentence
from models.types import CODED_LABELS, DRUG

#: The log-odds of an event are limited to this, in both directions.
MAX_LOG_ODDS = 5.0
#: A log-probability that no tag wins with; finite, since sums of it must not be NaN.
NEVER = -1000.0


class Tagged(NamedTuple):
    """A sentence with its tags."""

    tags: list[int]
    """of each word, never X"""
    probabilities: Floats
    """(words,): those of the tags"""
    event: float
    """probability that the sentence reports an adverse event"""
    pieces: WordPieces
    first: int
    """row of its first piece among the hidden states of the batch"""


class Reading(NamedTuple):
    """Texts with the hidden states and the tags of their sentences."""

    texts: Sequence[str]
    sentences: list[Sentence]
    hidden: Tensor
    """(pieces, dimension), of all sentences"""
    tagged: list[Tagged]
    """of each sentence"""

    def of(self, texts: Container[int]) -> Reading:
        """The reading without the sentences of other texts."""
        pairs = [(s, t) for s, t in zip(self.sentences, self.tagged, strict=True) if s.text in texts]
        return self._replace(sentences=[s for s, _ in pairs], tagged=[t for _, t in pairs])

    def events(self) -> list[list[float]]:
        """For each text the probabilities, 0 to 1, that its sentences report an adverse event."""
        by_text: list[list[float]] = [[] for _ in self.texts]
        for sentence, tagged in zip(self.sentences, self.tagged, strict=True):
            by_text[sentence.text].append(tagged.event)
        return by_text


class Words(NamedTuple):
    """The words of all sentences of a batch, one behind the other."""

    lengths: list[int]
    """words of each sentence"""
    kept: Numbers
    """the words that have pieces"""
    kept_lengths: Numbers
    """so many of each sentence"""
    rows: Numbers
    """of the first piece of each of them among the hidden states"""


def words_of(split: Sequence[WordPieces], starts: Numbers) -> Words:
    """`starts`: row of the first piece of each sentence among the hidden states."""
    lengths = [len(s.count) for s in split]
    counts, first = (
        np.fromiter(itertools.chain.from_iterable(columns), np.int64)
        for columns in ((s.count for s in split), (s.first for s in split))
    )
    (with_pieces,) = counts.nonzero()
    sentence = np.arange(len(split)).repeat(lengths)
    kept_lengths = np.bincount(sentence[with_pieces], minlength=len(split))
    return Words(lengths, with_pieces, kept_lengths, (first + starts[sentence])[with_pieces])


class TagChooser:
    """Chooses the tags of a batch as `decoding` says."""

    def __init__(self, tags: Sequence[str], decoding: Decoding) -> None:
        """Raises ValueError where the transitions of `decoding` are of another number of tags."""
        n, transitions = len(tags), decoding.transitions
        if transitions is not None and transitions.shape != (n + 1, n):
            raise ValueError(f"transitions of shape {transitions.shape} for {n} tags")
        self._decoding = decoding
        self._coded = np.array([tag[2:] in CODED_LABELS for tag in tags])
        # A word on a hashtag or a handle may be a drug, or nothing.
        self._only_drug, self._nothing = (
            np.array([0 if tag in allowed else NEVER for tag in tags], np.float32)
            for allowed in ((OUTSIDE, f"B-{DRUG}", f"I-{DRUG}"), (OUTSIDE,))
        )

    def best(
        self,
        batch: Sequence[str],
        sentences: Sequence[Sentence],
        word_rows: Words,
        logs: Floats,
        events: Doubles | None,
    ) -> Decoded:
        """The tag of each word that has pieces, from their log-probabilities, (words, tags), and the
        probabilities that each sentence reports an event; and how clear the choice is in each sentence.
        """
        if events is not None and self._decoding.event_weight:
            logs = self._weighted(logs, events.repeat(word_rows.kept_lengths))
        logs = self._allowed(batch, sentences, word_rows, logs)
        transitions = self._decoding.transitions
        if transitions is None:
            return best_alone(logs, word_rows.kept_lengths)
        return viterbi(logs, word_rows.kept_lengths, transitions)

    def _weighted(self, logs: Floats, events: Doubles) -> Floats:
        """The log-probabilities; to those of coded tags the weighted log-odds of an event in the word's
        sentence are added. `events`: (words,).
        """
        odds = np.log(np.maximum(events, 1e-9) / np.maximum(1 - events, 1e-9))
        raised = odds.clip(-MAX_LOG_ODDS, MAX_LOG_ODDS) * self._decoding.event_weight
        weighted: Floats = (logs + np.outer(raised, self._coded)).astype(np.float32)
        return weighted

    def _allowed(
        self, batch: Sequence[str], sentences: Sequence[Sentence], word_rows: Words, logs: Floats
    ) -> Floats:
        """The log-probabilities; a word of a hashtag or handle cannot get a tag that is barred there."""
        starts = np.cumsum(word_rows.lengths) - word_rows.lengths
        barred = {
            start + word: is_hashtag
            for sentence, start in zip(sentences, starts.tolist(), strict=True)
            for word, is_hashtag in barred_words(batch[sentence.text], sentence.words)
        }
        if not barred:
            return logs
        logs = logs.copy()
        for row, word in enumerate(word_rows.kept.tolist()):
            if word in barred:
                logs[row] += self._only_drug if barred[word] else self._nothing
        return logs


def spread(word_rows: Words, best: Numbers, logs: Floats) -> tuple[list[list[int]], list[Floats]]:
    """Of each sentence the tags of all words and their probabilities, from the tags of the words that have
    pieces; the others are outside.
    """
    tags, probabilities = (
        np.zeros(sum(word_rows.lengths), np.int64),
        np.ones(sum(word_rows.lengths), np.float32),
    )
    tags[word_rows.kept], probabilities[word_rows.kept] = best, np.exp(logs[np.arange(len(best)), best])
    ends = np.cumsum(word_rows.lengths)[:-1]
    return [part.tolist() for part in np.split(tags, ends)], np.split(probabilities, ends)
