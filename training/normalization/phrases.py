"""The phrases that a release searches beside the names of the terminology."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from models.encoder.model import Encoder
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from training.common.codings.split import mention_key, pts_by_term, query, right_terms
from training.common.corpora import GoldCoding
from training.normalization.data import rows_by_pt, taught_phrases

#: Cosine from which a phrase counts as equal to another text.
SAME = 0.93
#: Subtracted from the cosine of a phrase of the teaching corpus.
TAUGHT_PENALTY = 0.05
#: Cosine from which a training mention counts: below, it takes codes from preferred terms without training
#: mentions. Found on draws that hold out whole drugs and preferred terms of the training mentions.
LEAST_COSINE = 0.85


def written_phrases(isolated: Encoder, terms: Sequence[Term], vectors: Tensor) -> Phrases:
    """The phrases of the teaching corpus without those that are hardly another text for S_isolated than a
    name or an earlier phrase of their preferred term. `vectors`: (terms, dimension), by S_isolated.
    """
    found, rows = taught_phrases(terms), rows_by_pt(terms)
    embedded = isolated.embed([p.words for p in found])
    places: dict[str, list[int]] = {}
    for i, phrase in enumerate(found):
        places.setdefault(phrase.pt, []).append(i)
    kept = sorted(own[i] for pt, own in places.items() for i in distinct(embedded[own], vectors[rows[pt]]))
    texts, pts = tuple(found[i].words for i in kept), tuple(found[i].pt for i in kept)
    return Phrases(texts, pts, embedded[kept], -2.0, TAUGHT_PENALTY)


def distinct(vectors: Tensor, others: Tensor) -> list[int]:
    """The rows of `vectors` (n, d) whose cosine with all of `others` (m, d) and with the chosen rows before
    them is less than SAME; all of unit length.
    """
    chosen: list[int] = []
    far, among = ((vectors @ others.T).amax(1) < SAME).tolist(), vectors @ vectors.T
    for i, is_far in enumerate(far):
        if is_far and bool((among[i, chosen] < SAME).all()):
            chosen.append(i)
    return chosen


def mention_phrases(isolated: Encoder, terms: Sequence[Term], golds: Sequence[GoldCoding]) -> Phrases:
    """The training mentions that all have one preferred term and are no name, in lower case."""
    by_term = pts_by_term(terms)
    pts: dict[str, set[str]] = {}
    for gold in golds:
        if right := right_terms(gold, by_term):
            pts.setdefault(mention_key(query(gold).surface), set()).update(right)
    found = {p: min(of) for p, of in sorted(pts.items()) if len(of) == 1 and p and p not in by_term}
    return Phrases(tuple(found), tuple(found.values()), isolated.embed(list(found)), LEAST_COSINE)
