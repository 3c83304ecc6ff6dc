"""The support set of a release: words and pairs, projected, balanced and condensed, and what is chosen on
validation sentences.

Related pairs are the gold relations. Unrelated pairs are drugs and effects without a relation, and the pairs
that the tagger finds in sentences without an adverse event, or drawn ones where it reads none.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from models.encoder.faiss_index import unit
from models.relation.pairs import LABELS
from models.relation.spaces import EmbeddingSpaces, EncodedSentence
from models.relation.support_set import Floats, Numbers, SupportSet, decode_tags, votes
from models.relation.voting import Voting
from models.text import word_texts
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
    has_effect,
    joined,
    known_drugs,
    mentions_of,
    named_pairs,
    pair_places,
    paired,
)

console = Console()
#: Queries of one product, which holds their cosines with the whole support.
_CHUNK = 512
T = TypeVar("T", int, float)
#: Dimensions of a stored word, and of each word of a stored pair.
DIMENSION, PAIR_DIMENSION = 64, 128
#: Sentences without an event that are read for it.
NEGATIVES = 1000
#: Support words outside of mentions before condensing, and all after it.
OUTSIDE, WORDS = 12_000, 8_000
#: What is tried; among equals the first is used, for neighbours the paper's number. Of pairs at least its
#: five, which a relation names as its reasons and whose share is its score.
K_WORDS, K_PAIRS = (7, 3, 5, 9, 11, 15, 31), (5, 7, 9, 11)
#: How similar a neighbour of a pair must be to vote for a relation.
COSINES = (0.0, 0.7, 0.75, *(round(0.01 * i, 2) for i in range(78, 93, 2)))


class ValidationPairs(NamedTuple):
    """Validation sentences with the pairs that the entity space finds in them."""

    examples: list[Example]
    """with and without an event"""
    gold_relations: int
    weight: float
    """of a sentence without an event, so that both kinds count in the corpus' proportion"""


def nearest(queries: Floats, support: Floats, k: int) -> Numbers:
    """Rows (queries, k) of the k nearest of (rows, d), by cosine, to each of (queries, d), nearest first."""
    asked, known = torch.from_numpy(unit(queries)), torch.from_numpy(unit(support))
    k = min(k, len(known))
    rows = [(part @ known.T).topk(k, dim=1).indices for part in torch.split(asked, _CHUNK)]
    return torch.cat(rows).numpy()


def voted(support: Floats, tags: Numbers, queries: Floats, k: int) -> Floats:
    """(queries, tags): the shares of the votes of the k nearest of `support` (words, d) with its `tags`."""
    return votes(tags[nearest(queries, support, k)], len(TAGS))


def mention_f1(tags: Numbers, data: Sequence[Example]) -> float:
    """The strict micro F1 of the mentions by the tags (words,) of all sentences in turn."""
    return strict_f1(mentions_of(tags, data), gold_spans(e.gold for e in data), LABELS)


def pair_scores(found: NDArray[np.bool_], data: ValidationPairs) -> dict[str, float]:
    """The strict F1 in the corpus' proportion of the pairs (pairs,) of `data` that are called related."""
    _, gold = pair_places(data.examples)
    counts = [len(e.pairs) + len(e.unrelated) for e in data.examples]
    each = [1.0 if has_effect(e.gold) else data.weight for e in data.examples]
    weights = np.repeat(np.array(each), counts)
    right, called = int((found & gold).sum()), round(float(weights[found].sum()))
    return {
        "corpus F1": 2 * right / max(1, called + data.gold_relations),
        "precision": right / max(1, called),
        "recall": right / max(1, data.gold_relations),
    }


@dataclass(frozen=True, slots=True)
class Parts:
    """What makes up a relation model; the support set begins without pairs."""

    spaces: EmbeddingSpaces
    support: SupportSet
    voting: Voting


def best(name: str, options: Sequence[T], score: Callable[[T], float]) -> T:
    """The option with the highest score, the first of equals; prints all."""
    scores = {option: score(option) for option in options}
    console.print(
        f"{name}: " + ", ".join(f"{o} {s:.4f}" for o, s in scores.items()), highlight=False, soft_wrap=True
    )
    return max(options, key=scores.__getitem__)


def word_vectors(
    spaces: EmbeddingSpaces,
    data: Sequence[Example],
    of: Callable[[Sequence[EncodedSentence]], list[Floats]] | None = None,
    size: int = 1024,
) -> Floats:
    """(words, d), sentence after sentence: as the encoder gives them, or as `of` does."""
    found = [np.zeros((0, spaces.encoder.dimension), np.float32)]
    for start in range(0, len(data), size):
        part = data[start : start + size]
        read = spaces.encode([word_texts(e.gold.text) for e in part])
        vectors = of(read) if of else [r.vectors.numpy() for r in read]
        found += [v[: len(e.tags)] for e, v in zip(part, vectors, strict=True)]
    return np.concatenate(found)


def fit_projection(vectors: Floats, dimension: int) -> Floats:
    """(d, dimension): the directions along which unit vectors differ most (no centring: cosines must
    survive), rounded to 16 bits.
    """
    gram = torch.from_numpy(vectors.T @ vectors).double()
    directions = torch.linalg.eigh(gram).eigenvectors.flip(1)[:, :dimension]
    return np.ascontiguousarray(directions.half().float().numpy())


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


def with_words(spaces: EmbeddingSpaces, corpus: Corpus, seed: int, *, joint: bool) -> Parts:
    """The parts of a model that tags but relates nothing yet. `spaces`: as trained; unless `joint`, each word
    is tagged by itself, as in the paper.
    """
    encoder, dense = spaces.encoder, spaces.projection
    plain = random.Random(seed).sample(corpus.negatives, min(NEGATIVES, len(corpus.negatives)))
    data = examples(corpus.train, encoder) + examples(plain, encoder, known_drugs(corpus.train))
    y = np.concatenate([e.tags for e in data])
    x, y = unit(word_vectors(spaces, data))[y != UNKNOWN], y[y != UNKNOWN]
    if dense.shape[1] > DIMENSION:
        dense = dense @ fit_projection(unit(x @ dense), DIMENSION)
    projection = dense.astype(np.float16).astype(np.float32)
    x, rng = unit(x @ projection), np.random.default_rng(seed)
    rows = balanced(x, y, OUTSIDE, rng)
    rows = rows[condensed(x[rows], y[rows], WORDS, K_WORDS[0], rng)]
    transitions = transitions_of([e for e in data if e.gold.mentions]) if joint else None
    none = np.zeros((0, 2), np.float32)
    support = SupportSet(x[rows], y[rows], none, np.zeros(0, bool), [], transitions)
    parts = Parts(EmbeddingSpaces(encoder, projection), support, Voting(K_WORDS[0], K_PAIRS[0]))
    valid = examples(corpus.valid, encoder)
    hidden = word_vectors(spaces, valid)

    def score(k: int) -> float:
        tried = replace(parts, voting=replace(parts.voting, k_words=k))
        return mention_f1(tagged(tried, hidden, valid), valid)

    k = best("neighbours of a word", K_WORDS, score)
    return replace(parts, voting=replace(parts.voting, k_words=k))


def tagged(parts: Parts, hidden: Floats, data: Sequence[Example]) -> Numbers:
    """(words,): the tags that a release gives the words of sentences, from `word_vectors` (words, d)."""
    support, queries = parts.support, unit(hidden) @ parts.spaces.projection
    shares = voted(support.words, support.tags, queries, parts.voting.k_words)
    return decode_tags(shares, [len(e.tags) for e in data], support.transitions)


def found_pairs(parts: Parts, texts: Sequence[GoldText], size: int = 1024) -> list[Example]:
    """The sentences in which both a drug and an effect are found, with the pairs of what is found."""
    found = []
    for start in range(0, len(texts), size):
        data = examples(texts[start : start + size], parts.spaces.encoder)
        tags = tagged(parts, word_vectors(parts.spaces, data), data)
        found += [paired(e, m) for e, m in zip(data, mentions_of(tags, data), strict=True)]
    return [e for e in found if len(e.pairs) or len(e.unrelated)]


def validation_pairs(parts: Parts, corpus: Corpus) -> ValidationPairs:
    found = [e for texts in (corpus.valid, corpus.valid_negatives) for e in found_pairs(parts, texts)]
    weight = PROPORTION * len(corpus.valid) / max(1, len(corpus.valid_negatives))
    return ValidationPairs(found, sum(len(t.relations) for t in corpus.valid), weight)


def with_pairs(
    parts: Parts, train: Sequence[Example], valid: ValidationPairs, sources: Mapping[str, str]
) -> Parts:
    """The parts with the pairs of `train`, and with the numbers that are best on those of `valid`; `sources`
    are those of a Corpus.
    """
    whole = np.eye(parts.spaces.encoder.dimension, dtype=np.float32)
    spaces = copy.copy(parts.spaces)
    spaces.pair_projection = whole
    (rows, related), (asked, _) = pair_places(train), pair_places(valid.examples)
    x = word_vectors(spaces, train, spaces.relation_vectors)
    queries = word_vectors(spaces, valid.examples, spaces.relation_vectors)
    spaces.pair_projection = pair_projection(x, rows[related])
    pairs = joined(unit(x @ spaces.pair_projection), rows)
    queries = joined(unit(queries @ spaces.pair_projection), asked)
    near, voting = nearest(queries, pairs, max(K_PAIRS)), parts.voting
    cosines = np.einsum("qd,qkd->qk", unit(queries), unit(pairs)[near])

    def score(k: int, least: float) -> float:
        counted = related[near[:, :k]] & (cosines[:, :k] >= least)
        return pair_scores(counted.mean(1) > voting.threshold, valid)["corpus F1"]

    k = best("neighbours of a pair", K_PAIRS, lambda k: score(k, 0.0))
    least = best("least cosine of a neighbour", COSINES, partial(score, k))
    return Parts(
        spaces,
        replace(parts.support, pairs=pairs, related=related, named=named_pairs(train, sources)),
        replace(voting, k_pairs=k, least_cosine=least),
    )


def pair_projection(x: Floats, related: Numbers) -> Floats:
    """(d, dimension), fitted on the words (words, d) of related pairs (pairs, 2) and as many other words."""
    used = np.unique(related)
    rest = np.setdiff1d(np.arange(len(x)), used)
    rest = np.random.default_rng(0).permutation(rest)[: len(used)]
    return fit_projection(x[np.concatenate([used, rest])], min(PAIR_DIMENSION, x.shape[1]))
