"""Scores of nearest neighbours while the spaces are trained: tags of words, and verdicts on pairs.

One matrix product finds the neighbours; a release searches in FAISS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from models.ner.decoding import spans_of
from models.relation.neighbours import Floats, Numbers, decode_tags, votes
from models.relation.pairs import LABELS
from models.text import words
from models.types import ADE
from training.common.tagging.spans import gold_spans
from training.evaluation.measures import f1, strict_spans
from training.relation.data import TAGS, Example, ValidationPairs

#: Queries of one product, which holds their cosines with the whole support.
_CHUNK = 512
PAIR_SCORES = ("corpus F1", "precision", "recall")


class Queries(NamedTuple):
    """Sentences with gold mentions, and sentences without an event."""

    valid: list[Example]
    negatives: list[Example]

    @property
    def examples(self) -> list[Example]:
        """Both, in this order."""
        return self.valid + self.negatives


def nearest(queries: Tensor, support: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Cosines and rows (queries, k) of the k nearest of (rows, d) to each of (queries, d)."""
    ours, theirs = normalize(queries, dim=-1), normalize(support, dim=-1)
    k = min(k, len(theirs))
    found = [(part @ theirs.T).topk(k, dim=1) for part in torch.split(ours, _CHUNK)]
    return torch.cat([f.values for f in found]), torch.cat([f.indices for f in found])


def tag_scores(
    support: Tensor,
    tags: Tensor,
    queries: Tensor,
    data: Queries,
    ks: Sequence[int],
    transitions: Floats | None = None,
) -> dict[int, dict[str, float]]:
    """For each k the strict micro and macro F1 of the mentions, and effects in 1,000 sentences without an
    event.

    `support` (words, d) with its `tags`; `queries` (words, d), those of `data`, sentence after sentence.
    `transitions`: as in `SupportSet`.
    """
    _, rows = nearest(queries, support, max(ks))
    scores = {}
    for k in ks:
        shares = votes(tags[rows[:, :k]].numpy(), len(TAGS))
        found = decode_tags(shares, [len(e.tags) for e in data.examples], transitions)
        scores[k] = mention_scores(found, data)
    return scores


def mention_scores(tags: Numbers, data: Queries) -> dict[str, float]:
    """The scores that `tag_scores` gives, of the tags (words,) of all sentences in turn."""
    spans = mentions_of(tags, data.examples)
    n = len(data.valid)
    strict = strict_spans(spans[:n], gold_spans(e.gold for e in data.valid), LABELS)
    false = sum(label == ADE for text in spans[n:] for _, _, label in text)
    return {
        "strict micro F1": strict.micro.f1,
        "macro F1": strict.macro_f1,
        "false effects per 1000": 1000 * false / max(1, len(data.negatives)),
    }


def mentions_of(tags: Numbers, data: Sequence[Example]) -> list[list[tuple[int, int, str]]]:
    """The mentions of each sentence as spans, from the tags of the words of all sentences in turn."""
    found, at = [], 0
    for example in data:
        own = [TAGS[t] for t in tags[at : at + len(example.tags)]]
        at += len(own)
        spans = words(example.gold.text)
        found.append([(spans[a].start, spans[b - 1].end, label) for label, a, b in spans_of(own)])
    return found


def pair_scores(
    support: Tensor, related: Tensor, queries: Tensor, gold: Tensor, data: ValidationPairs, ks: Sequence[int]
) -> dict[int, dict[str, float]]:
    """For each k the strict F1 of the pairs that the majority of their k neighbours call related.

    `support` (pairs, d) with `related` (pairs,); `queries` (pairs, d), those of `data`, with `gold` (pairs,).
    """
    weights = data.weights()
    _, rows = nearest(queries, support, max(ks))
    scores = {}
    for k in ks:
        found = related[rows[:, :k]].float().mean(1) > 0.5  # noqa: PLR2004  majority
        right = int((found & gold).sum())
        score = f1(right, round(float(weights[found].sum())), data.gold_relations)
        scores[k] = dict(zip(PAIR_SCORES, (score.f1, score.precision, score.recall), strict=True))
    return scores
