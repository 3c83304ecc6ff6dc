"""Scores of nearest neighbours while the spaces are trained: tags of words, and verdicts on pairs.

One matrix product finds the neighbours; a release searches in FAISS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from models.encoder.faiss_index import unit
from models.relation.neighbours import Floats, Numbers, votes
from models.relation.pairs import LABELS
from models.types import ADE
from training.common.tagging.spans import gold_spans
from training.evaluation.measures import f1, strict_spans
from training.relation.data import TAGS, Example, has_effect, mentions_of, pair_places

#: Queries of one product, which holds their cosines with the whole support.
_CHUNK = 512


class Queries(NamedTuple):
    """Sentences with gold mentions, and sentences without an event."""

    valid: list[Example]
    negatives: list[Example]

    @property
    def examples(self) -> list[Example]:
        """Both, in this order."""
        return self.valid + self.negatives


class ValidationPairs(NamedTuple):
    """Validation sentences with the pairs that the entity space finds in them."""

    examples: list[Example]
    """with and without an event"""
    gold_relations: int
    weight: float
    """of a sentence without an event, so that both kinds count in the corpus' proportion"""


def nearest(queries: Floats, support: Floats, k: int) -> Numbers:
    """Rows (queries, k) of the k nearest of (rows, d), by cosine, to each of (queries, d), nearest first."""
    ours, theirs = torch.from_numpy(unit(queries)), torch.from_numpy(unit(support))
    k = min(k, len(theirs))
    found = [(part @ theirs.T).topk(k, dim=1).indices for part in torch.split(ours, _CHUNK)]
    return torch.cat(found).numpy()


def voted(support: Floats, tags: Numbers, queries: Floats, k: int) -> Floats:
    """(queries, tags): the shares of the votes of the k nearest of `support` (words, d) with its `tags`."""
    return votes(tags[nearest(queries, support, k)], len(TAGS))


def mention_scores(tags: Numbers, data: Queries) -> dict[str, float]:
    """The strict micro F1 of the mentions, and effects in 1,000 sentences without an event, of the tags
    (words,) of all sentences in turn.
    """
    spans, n = mentions_of(tags, data.examples), len(data.valid)
    strict = strict_spans(spans[:n], gold_spans(e.gold for e in data.valid), LABELS)
    false = sum(label == ADE for text in spans[n:] for _, _, label in text)
    return {
        "strict micro F1": strict.micro.f1,
        "false effects per 1000": 1000 * false / max(1, len(data.negatives)),
    }


def pair_scores(found: NDArray[np.bool_], data: ValidationPairs) -> dict[str, float]:
    """The strict F1 in the corpus' proportion of the pairs (pairs,) of `data` that are called related."""
    _, gold = pair_places(data.examples)
    counts = [len(e.pairs) + len(e.unrelated) for e in data.examples]
    each = [1.0 if has_effect(e.gold) else data.weight for e in data.examples]
    weights = np.repeat(np.array(each), counts)
    score = f1(int((found & gold).sum()), round(float(weights[found].sum())), data.gold_relations)
    return {"corpus F1": score.f1, "precision": score.precision, "recall": score.recall}
