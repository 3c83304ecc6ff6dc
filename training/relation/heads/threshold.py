"""Choice of the score from which a pair is related, for releases with a sentence head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from models.relation.model import RelationModel
from models.scores import f1
from training.common.corpora import GoldText
from training.evaluation.relation import PROPORTION, gold_relations, span_of
from training.relation.knn_scores import PAIR_SCORES

console = Console()
#: Thresholds that are tried; among equals the first is taken.
THRESHOLDS = (0.5, *(round(0.05 * i, 2) for i in range(1, 20) if i != 10))  # noqa: PLR2004
#: Below any score.
_EVERY_PAIR = -1.0


def choose_threshold(model: RelationModel, valid: Sequence[GoldText], negatives: Sequence[GoldText]) -> float:
    """The threshold with the best strict F1 of the relations in validation sentences with (`valid`) and
    without an event (`negatives`), both in the corpus' proportion; prints the scores of each.
    """
    model.voting = replace(model.voting, threshold=_EVERY_PAIR)
    right, wrong = _scores(model, valid)
    _, false = _scores(model, negatives)
    weight = PROPORTION * len(valid) / max(1, len(negatives))
    gold = sum(len(t.relations) for t in valid)
    table, found = Table("threshold", *PAIR_SCORES, "false relations per 1000"), {}
    for threshold in sorted(THRESHOLDS):
        kept, others, of_none = (sum(s > threshold for s in own) for own in (right, wrong, false))
        score = f1(kept, round(kept + others + weight * of_none), gold)
        found[threshold] = score.f1
        per_1000 = 1000 * of_none / max(1, len(negatives))
        cells = (score.f1, score.precision, score.recall, per_1000)
        table.add_row(str(threshold), *(f"{v:.4f}" for v in cells))
    console.print(table)
    best = max(THRESHOLDS, key=lambda threshold: found[threshold])
    model.voting = replace(model.voting, threshold=best)
    return best


def _scores(model: RelationModel, texts: Sequence[GoldText]) -> tuple[list[float], list[float]]:
    """The scores of all pairs found that are gold relations, and of those that are not."""
    right, wrong = list[float](), list[float]()
    for text, tagged in zip(texts, model.predict([t.text for t in texts]), strict=True):
        gold = gold_relations(text)
        for relation in tagged.relations:
            pair = span_of(tagged.mentions[relation.head]), span_of(tagged.mentions[relation.tail])
            (right if pair in gold else wrong).append(relation.score)
    return right, wrong
