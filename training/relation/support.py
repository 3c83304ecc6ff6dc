"""The support set of a release: training pairs, projected, and what is chosen on validation sentences.

Related pairs are the gold relations. Unrelated pairs are drugs and effects without a relation, and the pairs
that the tagger finds in sentences without an adverse event, or drawn ones where it reads none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from models.encoder.faiss_index import unit
from models.encoder.model import Encoder
from models.ner.decoding import Numbers
from models.relation.model import RelationModel
from models.relation.support_set import Floats, SupportSet
from models.relation.voting import Voting
from models.text import word_texts
from training.relation.data import Example, has_effect, joined, named_pairs, pair_places

console = Console()
#: Queries of one product, which holds their cosines with the whole support.
_CHUNK = 512
T = TypeVar("T", int, float)
#: Dimensions of each word of a stored pair.
PAIR_DIMENSION = 128
#: What is tried; among equals the first is used, the paper's number. At least five, which a relation names as
#: its reasons and whose share is its score.
K_PAIRS = (5, 7, 9, 11)
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


def best(name: str, options: Sequence[T], score: Callable[[T], float]) -> T:
    """The option with the highest score, the first of equals; prints all."""
    scores = {option: score(option) for option in options}
    console.print(
        f"{name}: " + ", ".join(f"{o} {s:.4f}" for o, s in scores.items()), highlight=False, soft_wrap=True
    )
    return max(options, key=scores.__getitem__)


def word_vectors(encoder: Encoder, data: Sequence[Example], size: int = 1024) -> Floats:
    """(words, d), sentence after sentence."""
    found = [np.zeros((0, encoder.dimension), np.float32)]
    for start in range(0, len(data), size):
        part = data[start : start + size]
        with torch.inference_mode():
            read = encoder.word_vectors([word_texts(e.gold.text) for e in part])
        found += [v[: len(e.tags)].numpy() for e, v in zip(part, read, strict=True)]
    return np.concatenate(found)


def fit_projection(vectors: Floats, dimension: int) -> Floats:
    """(d, dimension): the directions along which unit vectors differ most (no centring: cosines must
    survive), rounded to 16 bits.
    """
    gram = torch.from_numpy(vectors.T @ vectors).double()
    directions = torch.linalg.eigh(gram).eigenvectors.flip(1)[:, :dimension]
    return np.ascontiguousarray(directions.half().float().numpy())


def with_pairs(
    encoder: Encoder, train: Sequence[Example], valid: ValidationPairs, sources: Mapping[str, str]
) -> RelationModel:
    """A model of the pairs of `train`, with the numbers that are best on those of `valid`; `sources` are
    those of a Corpus.
    """
    (rows, related), (asked, _) = pair_places(train), pair_places(valid.examples)
    x, queries = (unit(word_vectors(encoder, data)) for data in (train, valid.examples))
    projection = pair_projection(x, rows[related])
    pairs, queries = joined(unit(x @ projection), rows), joined(unit(queries @ projection), asked)
    near, voting = nearest(queries, pairs, max(K_PAIRS)), Voting(K_PAIRS[0])
    cosines = np.einsum("qd,qkd->qk", unit(queries), unit(pairs)[near])

    def score(k: int, least: float) -> float:
        counted = related[near[:, :k]] & (cosines[:, :k] >= least)
        return pair_scores(counted.mean(1) > voting.threshold, valid)["corpus F1"]

    k = best("neighbours of a pair", K_PAIRS, lambda k: score(k, 0.0))
    least = best("least cosine of a neighbour", COSINES, partial(score, k))
    support = SupportSet(pairs, related, named_pairs(train, sources))
    return RelationModel(encoder, projection, support, replace(voting, k_pairs=k, least_cosine=least))


def pair_projection(x: Floats, related: Numbers) -> Floats:
    """(d, dimension), fitted on the words (words, d) of related pairs (pairs, 2) and as many other words."""
    used = np.unique(related)
    rest = np.setdiff1d(np.arange(len(x)), used)
    rest = np.random.default_rng(0).permutation(rest)[: len(used)]
    return fit_projection(x[np.concatenate([used, rest])], min(PAIR_DIMENSION, x.shape[1]))
