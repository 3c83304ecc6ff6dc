"""The tagger of CLNER: words by the votes of their nearest training words in the entity space. It finds the
drugs and effects of sentences without an adverse event, whose pairs are unrelated ones; no release tags.

Unlike in the paper, the most probable tag sequence is chosen, not the best tag of each word.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.encoder.faiss_index import unit
from models.encoder.model import Encoder
from models.ner.decoding import Numbers, viterbi
from models.relation.pairs import LABELS
from models.relation.support_set import Floats
from training.common.corpora import GoldText
from training.common.tagging.spans import gold_spans
from training.common.tagging.transitions import pairs_of
from training.common.tagging.transitions import transitions_of as tag_transitions
from training.evaluation.measures import strict_f1
from training.evaluation.relation import PROPORTION
from training.relation.data import (
    TAGS,
    UNKNOWN,
    Corpus,
    Example,
    examples,
    known_drugs,
    mentions_of,
    paired,
)
from training.relation.support import ValidationPairs, best, fit_projection, nearest, word_vectors

#: Dimensions of a word.
DIMENSION = 64
#: Sentences without an event that are read for the words.
NEGATIVES = 1000
#: Words outside of mentions before condensing, and all after it.
OUTSIDE, WORDS = 12_000, 8_000
#: Neighbours that are tried; among equals the first is used, the paper's number.
K_WORDS = (7, 3, 5, 9, 11, 15, 31)
#: Added to every share before the logarithm, so that a tag without any vote stays possible.
FLOOR = 0.05


@dataclass(frozen=True, slots=True)
class Tagger:
    """An encoder, a projection, and training words as unit vectors with their tags."""

    encoder: Encoder
    projection: Floats
    """(encoder dimension, dimension of the entity space)"""
    words: Floats
    """(words, dimension of the entity space)"""
    tags: Numbers
    """(words,)"""
    transitions: Floats | None
    """those of `viterbi`; None: each word is tagged by itself"""
    k: int
    """neighbours that vote"""

    def tag(self, data: Sequence[Example], hidden: Floats | None = None) -> Numbers:
        """(words,): the tags of the words of sentences; `hidden`: their `word_vectors`, if known."""
        if hidden is None:
            hidden = word_vectors(self.encoder, data)
        shares = voted(self.words, self.tags, unit(hidden) @ self.projection, self.k)
        return decode_tags(shares, [len(e.tags) for e in data], self.transitions)


def tagger_of(encoder: Encoder, dense: Floats, corpus: Corpus, seed: int, *, joint: bool) -> Tagger:
    """The tagger of a trained encoder and its dense layer (d, width), or of the projection that another
    tagger had; equal arguments give equal words. Unless `joint`, each word is tagged by itself, as in the
    paper.
    """
    plain = random.Random(seed).sample(corpus.negatives, min(NEGATIVES, len(corpus.negatives)))
    data = examples(corpus.train, encoder) + examples(plain, encoder, known_drugs(corpus.train))
    y = np.concatenate([e.tags for e in data])
    x, y = unit(word_vectors(encoder, data))[y != UNKNOWN], y[y != UNKNOWN]
    if dense.shape[1] > DIMENSION:
        dense = dense @ fit_projection(unit(x @ dense), DIMENSION)
    projection = dense.astype(np.float16).astype(np.float32)
    x, rng = unit(x @ projection), np.random.default_rng(seed)
    rows = balanced(x, y, OUTSIDE, rng)
    rows = rows[condensed(x[rows], y[rows], WORDS, K_WORDS[0], rng)]
    transitions = transitions_of([e for e in data if e.gold.mentions]) if joint else None
    tagger = Tagger(encoder, projection, x[rows], y[rows], transitions, K_WORDS[0])
    valid = examples(corpus.valid, encoder)
    hidden = word_vectors(encoder, valid)
    k = best(
        "neighbours of a word", K_WORDS, lambda k: mention_f1(replace(tagger, k=k).tag(valid, hidden), valid)
    )
    return replace(tagger, k=k)


def found_pairs(tagger: Tagger, texts: Sequence[GoldText], size: int = 1024) -> list[Example]:
    """The sentences in which both a drug and an effect are found, with the pairs of what is found."""
    found = []
    for start in range(0, len(texts), size):
        data = examples(texts[start : start + size], tagger.encoder)
        found += [paired(e, m) for e, m in zip(data, mentions_of(tagger.tag(data), data), strict=True)]
    return [e for e in found if len(e.pairs) or len(e.unrelated)]


def validation_pairs(tagger: Tagger, corpus: Corpus) -> ValidationPairs:
    """What is found in the validation sentences."""
    found = [e for texts in (corpus.valid, corpus.valid_negatives) for e in found_pairs(tagger, texts)]
    weight = PROPORTION * len(corpus.valid) / max(1, len(corpus.valid_negatives))
    return ValidationPairs(found, sum(len(t.relations) for t in corpus.valid), weight)


def mention_f1(tags: Numbers, data: Sequence[Example], labels: Sequence[str] = LABELS) -> float:
    """The strict micro F1 of the mentions of these labels by the tags (words,) of all sentences in turn."""
    return strict_f1(mentions_of(tags, data), gold_spans(e.gold for e in data), labels)


def votes(tags: Numbers, n_tags: int) -> Floats:
    """Each tag's share of the votes, (queries, n_tags), from the tags of the k nearest neighbours, (queries,
    k), which count alike.
    """
    shares: Floats = (tags[:, :, None] == np.arange(n_tags)).mean(1, dtype=np.float32)
    return shares


def voted(support: Floats, tags: Numbers, queries: Floats, k: int) -> Floats:
    """(queries, tags): the shares of the votes of the k nearest of `support` (words, d) with its `tags`."""
    return votes(tags[nearest(queries, support, k)], len(TAGS))


def decode_tags(shares: Floats, lengths: Sequence[int], transitions: Floats | None) -> Numbers:
    """The tag of each word, (words,), from the vote shares (words, tags) of several sentences one after
    another; `lengths`: the number of words of each sentence.

    With transitions: the most probable tag sequence of each sentence, with the votes as emissions of a
    Viterbi decoder (Yang and Katiyar 2020, StructShot). Without: the tag with most votes.
    """
    if transitions is None:
        independent: Numbers = shares.argmax(1)
        return independent
    return viterbi(np.log(shares + FLOOR), lengths, transitions).tags


def balanced(x: Floats, y: Numbers, outside: int, rng: np.random.Generator) -> Numbers:
    """Rows of every word inside of mentions and of `outside` words outside of them: half of these are the
    words nearest to mentions, half are drawn at random.
    """
    inside, others = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
    if len(others) <= outside or not len(inside):
        return np.sort(np.concatenate([inside, others[:outside]]))
    sample = x[rng.choice(inside, min(4000, len(inside)), replace=False)]
    near = (x[others] * sample[nearest(x[others], sample, 1)[:, 0]]).sum(1)
    order = np.argsort(-near)
    rest = rng.choice(order[outside // 2 :], outside - outside // 2, replace=False)
    return np.sort(np.concatenate([inside, others[order[: outside // 2]], others[rest]]))


def condensed(x: Floats, y: Numbers, size: int, k: int, rng: np.random.Generator) -> Numbers:
    """Rows of at most `size` words, every tag in its proportion: words that their k neighbours outvote are
    removed (Wilson's editing), the others are sampled at random.

    Words of a tag form dense clusters, so a random sample votes like the whole. Hart's condensing rule, which
    collects outvoted words, keeps the noise between clusters and costs two points of F1 here.
    """
    if len(y) <= size:
        return np.arange(len(y))
    # The nearest neighbour of a word is the word itself.
    shares = votes(y[nearest(x, x, k + 1)[:, 1:]], len(TAGS))
    agreed = np.flatnonzero(shares.argmax(1) == y)
    chosen = []
    for tag in np.unique(y[agreed]):
        of_tag = agreed[y[agreed] == tag]
        chosen.append(rng.permutation(of_tag)[: max(1, size * len(of_tag) // len(agreed))])
    return np.sort(np.concatenate(chosen))


def transitions_of(data: Sequence[Example]) -> Floats:
    """The transitions between the tags of sentences, where both are known."""
    pairs = pairs_of([e.tags.tolist() for e in data], len(TAGS))
    return tag_transitions(pairs[:, (pairs != UNKNOWN).all(0)], TAGS)
