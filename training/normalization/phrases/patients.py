"""Chooses the phrases of training mentions that are searched in addition to the terms, and the cosine from
which a phrase counts.

The threshold is chosen on training mentions alone: random draws hold out whole drugs and whole preferred
terms. Only thresholds are allowed under which preferred terms that the remaining mentions never have are
coded as well as without phrases; of these the one with the most right codings is chosen.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.encoder.model import Encoder
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from training.common.codings.split import mention_key, pts_by_term, query, right_terms
from training.common.corpora import GoldCoding

GRID = (0.0, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.01)
DRAWS = 8
#: Held out in each draw: of the drugs, and of the preferred terms.
DRUGS, TERMS = 0.25, 1 / 6
#: How much accuracy on unseen preferred terms may be lost: less than one mention in a draw.
ALLOWED_LOSS = 0.002
ByTerm = Mapping[str, set[str]]


class Effect(NamedTuple):
    """Mean over the draws: accuracy with a threshold, over all mentions and over unseen preferred terms."""

    at_least: float
    accuracy: float
    unseen: float


def collect(golds: Sequence[GoldCoding], by_term: ByTerm) -> dict[str, str]:
    """Phrase, lower case, to the one preferred term that all its mentions have; phrases that are terms are
    left out.
    """
    pts_by_phrase: dict[str, set[str]] = {}
    for gold in golds:
        if right := right_terms(gold, by_term):
            pts_by_phrase.setdefault(mention_key(query(gold).surface), set()).update(right)
    return {
        p: min(pts) for p, pts in sorted(pts_by_phrase.items()) if len(pts) == 1 and p and p not in by_term
    }


def draws(golds: Sequence[GoldCoding], by_term: ByTerm, seed: int) -> Iterator[tuple[list[GoldCoding], ...]]:
    """(rest, held out) pairs; no mention string of one is in the other."""
    drugs = sorted({g.drug for g in golds})
    terms = sorted({pt for g in golds for pt in right_terms(g, by_term)})
    for draw in range(DRAWS):
        rng = random.Random(seed * 1009 + draw)
        held_drugs = set(rng.sample(drugs, max(1, round(DRUGS * len(drugs)))))
        held_terms = set(rng.sample(terms, max(1, round(TERMS * len(terms)))))
        test = [g for g in golds if g.drug in held_drugs or right_terms(g, by_term) & held_terms]
        strings = {mention_key(g.mention) for g in test}
        rest = [
            g
            for g in golds
            if mention_key(g.mention) not in strings and not right_terms(g, by_term) & held_terms
        ]
        yield rest, test


def effects(
    isolated: Encoder, terms: Sequence[Term], vectors: Tensor, golds: Sequence[GoldCoding], seed: int
) -> list[Effect]:
    """The effect of each threshold of the grid; mentions and phrases alone, without their sentences.

    `vectors`: (terms, dimension) unit vectors by `isolated`.
    """
    by_term = pts_by_term(terms)
    known = [g for g in golds if right_terms(g, by_term)]
    space = _Space(isolated, terms, vectors, {query(g).surface for g in known} | set(collect(known, by_term)))
    sums = torch.zeros(len(GRID), 2)
    counted = 0
    for rest, test in draws(known, by_term, seed):
        phrases = collect(rest, by_term)
        trained = {pt for g in rest for pt in right_terms(g, by_term)}
        right = [right_terms(g, by_term) for g in test]
        unseen = torch.tensor([not own & trained for own in right])
        if not phrases or not bool(unseen.any()):
            continue
        mentions = [query(g).surface for g in test]
        for row, codings in enumerate(space.codings(mentions, phrases)):
            hits = torch.tensor([pt in own for pt, own in zip(codings, right, strict=True)]).float()
            sums[row] += torch.stack([hits.mean(), hits[unseen].mean()])
        counted += 1
    means = (sums / max(1, counted)).tolist()
    return [Effect(t, round(a, 4), round(u, 4)) for t, (a, u) in zip(GRID, means, strict=True)]


class _Space:
    """Unit vectors of terms, mentions and phrases."""

    def __init__(self, isolated: Encoder, terms: Sequence[Term], vectors: Tensor, texts: set[str]) -> None:
        """`texts`: all mentions and phrases."""
        order = sorted(texts)
        self._row = {t: i for i, t in enumerate(order)}
        self._embedded, self._terms = isolated.embed(order), vectors
        self._pts = sorted({t.pt for t in terms})
        self._column = {pt: i for i, pt in enumerate(self._pts)}
        self._columns_of_terms = torch.tensor([self._column[t.pt] for t in terms])

    def codings(self, mentions: Sequence[str], phrases: Mapping[str, str]) -> Iterator[list[str]]:
        """For each threshold of the grid the nearest preferred term of each mention."""
        queries = self._embedded[[self._row[m] for m in mentions]]
        columns_of_phrases = torch.tensor([self._column[pt] for pt in phrases.values()])
        by_terms = self._best(queries @ self._terms.T, self._columns_of_terms)
        by_phrases = self._best(
            queries @ self._embedded[[self._row[p] for p in phrases]].T, columns_of_phrases
        )
        for at_least in GRID:
            counting = by_phrases.masked_fill(by_phrases < at_least, -1.0)
            yield [self._pts[i] for i in torch.maximum(by_terms, counting).argmax(1).tolist()]

    def _best(self, cosines: Tensor, columns: Tensor) -> Tensor:
        """(mentions, rows) to (mentions, preferred terms): the best of each one's rows, -1 without any."""
        start = torch.full((len(cosines), len(self._pts)), -1.0)
        return start.scatter_reduce(1, columns.expand(len(cosines), -1), cosines, "amax")


def threshold(grid: Sequence[Effect]) -> float:
    """The chosen threshold; the last of the grid lets no phrase count."""
    without = grid[-1]
    allowed = [e for e in grid if e.unseen >= without.unseen - ALLOWED_LOSS]
    return max(allowed, key=lambda e: e.accuracy).at_least


def phrases_of(
    isolated: Encoder, terms: Sequence[Term], golds: Sequence[GoldCoding], at_least: float
) -> Phrases:
    """The phrases of all these mentions with their vectors."""
    phrases = collect(golds, pts_by_term(terms))
    return Phrases(tuple(phrases), tuple(phrases.values()), isolated.embed(list(phrases)), at_least)
