"""Choice of the probability of an adverse event from which the pairs of a sentence may be related."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from models.relation.model import RelationModel
from training.common.corpora import GoldText
from training.evaluation.measures import f1
from training.evaluation.relation import PROPORTION, gold_relations, span_of
from training.relation.knn_scores import PAIR_SCORES

console = Console()
#: Thresholds that are tried; of equally good ones the highest is used.
THRESHOLDS = (*(round(0.05 * i, 2) for i in range(20)), 0.96, 0.97, 0.98, 0.99)
#: Below any probability.
_EVERY_SENTENCE = -1.0


class _Found(NamedTuple):
    """The event probabilities of the sentences of right and wrong relations."""

    right: list[float]
    wrong: list[float]


def choose_event_threshold(
    model: RelationModel, valid: Sequence[GoldText], negatives: Sequence[GoldText]
) -> float:
    """The threshold with the best strict F1 of the relations in validation sentences with (`valid`) and
    without an event (`negatives`), both in the corpus' proportion; prints the scores of each. The model,
    which has a sentence head, uses it from then on.
    """
    own, none = _probabilities(model, valid), _probabilities(model, negatives)
    weight = PROPORTION * len(valid) / max(1, len(negatives))
    gold = sum(len(t.relations) for t in valid)
    table, found = Table("threshold of the event", *PAIR_SCORES, "false relations per 1000"), {}
    for threshold in THRESHOLDS:
        parts = own.right, own.wrong, none.wrong
        kept, others, of_none = (sum(p > threshold for p in part) for part in parts)
        score = f1(kept, round(kept + others + weight * of_none), gold)
        found[threshold] = score.f1
        per_1000 = 1000 * of_none / max(1, len(negatives))
        cells = (score.f1, score.precision, score.recall, per_1000)
        table.add_row(str(threshold), *(f"{v:.4f}" for v in cells))
    console.print(table)
    best = max(reversed(THRESHOLDS), key=lambda threshold: found[threshold])
    model.voting = replace(model.voting, event_threshold=best)
    return best


def _probabilities(model: RelationModel, texts: Sequence[GoldText]) -> _Found:
    """The probability that its sentence reports an event, for each relation that the votes find."""
    head, sentences = model.sentence_head, [t.text for t in texts]
    model.voting = replace(model.voting, event_threshold=_EVERY_SENTENCE)
    scored = model.predict(sentences)
    model.sentence_head = None
    voted = model.predict(sentences)
    model.sentence_head = head
    found = _Found([], [])
    for text, with_head, without in zip(texts, scored, voted, strict=True):
        gold = gold_relations(text)
        for relation, vote in zip(with_head.relations, without.relations, strict=True):
            pair = span_of(with_head.mentions[vote.head]), span_of(with_head.mentions[vote.tail])
            (found.right if pair in gold else found.wrong).append(relation.score / vote.score)
    return found
