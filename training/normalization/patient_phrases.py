"""Which phrases of training mentions are searched beside the terms, and how near a mention must be to one.

The threshold is found on training mentions alone: in seeded draws whole drugs and whole preferred terms are
held out, and of the thresholds under which the preferred terms that the rest never has are coded as well as
without phrases, the one with the most right codings is taken.
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
from training.common.coding_split import mention_key, pts_by_term, query, right_terms
from training.common.corpora import GoldCoding

GRID = (0.0, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.01)
DRAWS = 8
#: Held out in each draw: of the drugs, and of the preferred terms.
DRUGS, TERMS = 0.25, 1 / 6
#: What the accuracy on unseen preferred terms may lose: less than one mention in a draw.
LOSE = 0.002
ByTerm = Mapping[str, set[str]]


class Effect(NamedTuple):
    """Mean over the draws: accuracy with a threshold, over all mentions and over unseen preferred terms."""

    at_least: float
    accuracy: float
    unseen: float


def collect(golds: Sequence[GoldCoding], by_term: ByTerm) -> dict[str, str]:
    """Phrase, lower case, to the one preferred term that all its mentions have; those that are terms already
    are left out.
    """
    found: dict[str, set[str]] = {}
    for gold in golds:
        if right := right_terms(gold, by_term):
            found.setdefault(mention_key(query(gold).surface), set()).update(right)
    return {p: min(pts) for p, pts in sorted(found.items()) if len(pts) == 1 and p and p not in by_term}


def draws(golds: Sequence[GoldCoding], by_term: ByTerm, seed: int) -> Iterator[tuple[list[GoldCoding], ...]]:
    """(rest, held out) pairs; no mention string of one is in the other."""
    drugs = sorted({g.drug for g in golds})
    terms = sorted({pt for g in golds for pt in right_terms(g, by_term)})
    for draw in range(DRAWS):
        rng = random.Random(seed * 1009 + draw)
        held = set(rng.sample(drugs, max(1, round(DRUGS * len(drugs)))))
        away = set(rng.sample(terms, max(1, round(TERMS * len(terms)))))
        test = [g for g in golds if g.drug in held or right_terms(g, by_term) & away]
        strings = {mention_key(g.mention) for g in test}
        rest = [
            g for g in golds if mention_key(g.mention) not in strings and not right_terms(g, by_term) & away
        ]
        yield rest, test


def effects(
    isolated: Encoder, terms: Sequence[Term], vectors: Tensor, golds: Sequence[GoldCoding], seed: int
) -> list[Effect]:
    """What each threshold of the grid does; mentions and phrases alone, without their sentences."""
    by_term = pts_by_term(terms)
    known = [g for g in golds if right_terms(g, by_term)]
    texts = sorted({query(g).surface for g in known} | set(collect(known, by_term)))
    place = {t: i for i, t in enumerate(texts)}
    embedded = isolated.embed(texts)
    pts = {pt: i for i, pt in enumerate(sorted({t.pt for t in terms}))}
    columns = torch.tensor([pts[t.pt] for t in terms])
    sums = torch.zeros(len(GRID), 2)
    counted = 0
    for rest, test in draws(known, by_term, seed):
        phrases = collect(rest, by_term)
        trained = {pt for g in rest for pt in right_terms(g, by_term)}
        unseen = torch.tensor([not right_terms(g, by_term) & trained for g in test])
        if not phrases or not bool(unseen.any()):
            continue
        mentions = embedded[[place[query(g).surface] for g in test]]
        near = _best(mentions @ vectors.T, columns, len(pts))
        own = torch.tensor([pts[pt] for pt in phrases.values()])
        said = _best(mentions @ embedded[[place[p] for p in phrases]].T, own, len(pts))
        for row, at_least in enumerate(GRID):
            top = torch.maximum(near, said.masked_fill(said < at_least, -1.0)).argmax(1).tolist()
            names = list(pts)
            hits = torch.tensor(
                [names[t] in right_terms(g, by_term) for t, g in zip(top, test, strict=True)]
            ).float()
            sums[row] += torch.stack([hits.mean(), hits[unseen].mean()])
        counted += 1
    means = (sums / max(1, counted)).tolist()
    return [Effect(t, round(a, 4), round(u, 4)) for t, (a, u) in zip(GRID, means, strict=True)]


def _best(cosines: Tensor, columns: Tensor, n: int) -> Tensor:
    """(mentions, rows) to (mentions, preferred terms): the best of each one's rows, -1 without any."""
    start = torch.full((len(cosines), n), -1.0)
    return start.scatter_reduce(1, columns.expand(len(cosines), -1), cosines, "amax")


def threshold(found: Sequence[Effect]) -> float:
    """The last of the grid lets no phrase count."""
    without = found[-1]
    return max((e for e in found if e.unseen >= without.unseen - LOSE), key=lambda e: e.accuracy).at_least


def phrases_of(
    isolated: Encoder, terms: Sequence[Term], golds: Sequence[GoldCoding], at_least: float
) -> Phrases:
    found = collect(golds, pts_by_term(terms))
    return Phrases(tuple(found), tuple(found.values()), isolated.embed(list(found)), at_least)
