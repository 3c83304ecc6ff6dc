"""Trains the editor. The targets are the kinds that a written short question asks, and the overlap of each
answer with the written question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.summarization.editing.editor import edited_clause
from models.summarization.editing.edits import FEATURES, edits, kept_features
from models.summarization.editing.guard import Limits
from models.summarization.editing.intent import ASKING_WORDS, intent_of
from models.summarization.editing.kinds import kind_features
from models.summarization.extraction.extractor import Extraction, Extractor
from models.summarization.extraction.key_words import FUNCTION_WORDS
from models.summarization.extraction.message import Message
from models.summarization.extraction.ranker import LinearRanker
from models.summarization.medical_entities import word_keys
from training.summarization.data import Pair
from training.summarization.editing.gold_kinds import gold_kinds
from training.summarization.extraction.fit import Group, fit, logistic

#: Inverse strength of the regressions' penalty, and number of folds of the cross-validation.
PENALTY, FOLDS = 0.2, 5
#: Temperature of the softmax over the values of answers, which are the ranker's targets.
TEMPERATURE = 0.1
#: Weights of F1 of words, of recall of content words, and of asking the right kind in the value of an answer.
F1_WEIGHT, RECALL_WEIGHT, KIND_WEIGHT = 0.7, 0.7, 0.3
#: Minimum share of edits with a right kind, on questions of the held-out fold.
RIGHT = 0.75
#: How far an opening may differ from the clause that it replaces.
LIMITS = Limits(asked=3, stated=5, stated_kind=0.4, helping=0.6, outside=0.3, listing=0.4)


class EditorWeights(NamedTuple):
    """The trained weights of the editor."""

    kinds: Tensor
    """(features, kinds)"""
    ranker: dict[str, float]
    margin: float
    """minimum difference between the scores of an edit and of the extracted answer"""


class _Offered(NamedTuple):
    """The possible answers for one message, the extracted one first."""

    rows: list[list[float]]
    values: list[float]
    right: list[bool]


def train_editor(extractor: Extractor, pairs: Sequence[Pair], read: Sequence[Message]) -> EditorWeights:
    """Fits the classifier of kinds and the ranker of edits, with the answers of a trained extractor to the
    messages of the pairs, which have been `read`, with key words by cross-validation if there are any. Ranker
    and margin are fitted with kinds that were predicted by cross-validation. Raises ValueError if no edit is
    allowed for any text.
    """
    found = extractor.found(read)
    x = torch.stack([kind_features(f.message, f.kept.chosen.sentence) for f in found]).double()
    gold = torch.tensor([gold_kinds(p.summary) for p in pairs], dtype=torch.float64)
    fold = [i % FOLDS for i in range(len(pairs))]
    unseen = _cross_validated(x, gold, torch.tensor(fold))
    offered = [
        _offered(f, p, kinds, right)
        for f, p, kinds, right in zip(found, pairs, unseen, (gold > 0).tolist(), strict=True)
    ]
    margins: list[tuple[float, bool]] = []
    for k in range(FOLDS):
        others = [o for o, own in zip(offered, fold, strict=True) if own != k and len(o.rows) > 1]
        held = [o for o, own in zip(offered, fold, strict=True) if own == k and len(o.rows) > 1]
        if others and held:
            ranker = LinearRanker(_weights(others), FEATURES)
            margins += [_margin(ranker, o) for o in held]
    return EditorWeights(logistic(x, gold, PENALTY).float(), _weights(offered), least_margin(margins))


def _cross_validated(x: Tensor, gold: Tensor, fold: Tensor) -> list[list[float]]:
    """The probabilities of the kinds of each text, by weights that were fitted to the other folds."""
    unseen = torch.zeros_like(gold)
    for k in range(FOLDS):
        own = fold == k
        if own.any() and not own.all():
            unseen[own] = (x[own] @ logistic(x[~own], gold[~own], PENALTY)).sigmoid()
    return unseen.tolist()


def least_margin(found: Sequence[tuple[float, bool]], precision: float = RIGHT) -> float:
    """The lowest margin above which the share `precision` of the edits is right. `found`: margin of each
    edit, and whether it is right.
    """
    right, least = 0, float("inf")
    for n, (margin, is_right) in enumerate(sorted(found, reverse=True), 1):
        right += is_right
        if right >= precision * n:
            least = margin
    return least


def _offered(found: Extraction, pair: Pair, kinds: Sequence[float], right: Sequence[bool]) -> _Offered:
    question = intent_of(found, edited_clause(found), kinds)
    own = edits(question, LIMITS)
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415  a second to import

    scorer = RougeScorer(["rouge1"], use_stemmer=True)
    reference = set(word_keys(pair.summary)) - FUNCTION_WORDS - ASKING_WORDS
    rights = [False, *(all(right[k] for k in e.kinds) for e in own)]
    values = []
    for text, is_right in zip([question.kept.text, *(e.text for e in own)], rights, strict=True):
        f1 = scorer.score(pair.summary, text)["rouge1"].fmeasure
        recall = len(reference & set(word_keys(text))) / max(1, len(reference))
        values.append(F1_WEIGHT * f1 + RECALL_WEIGHT * recall + KIND_WEIGHT * is_right)
    return _Offered([kept_features(question), *(e.features for e in own)], values, rights)


def _weights(offered: Sequence[_Offered]) -> dict[str, float]:
    return fit([Group(o.rows, o.values) for o in offered], FEATURES, TEMPERATURE)


def _margin(ranker: LinearRanker, offered: _Offered) -> tuple[float, bool]:
    """Difference of the scores of the best edit and the extracted answer; whether its kind is right."""
    kept, *scores = ranker.scores(offered.rows)
    best = max(range(len(scores)), key=scores.__getitem__)
    return scores[best] - kept, offered.right[best + 1]
