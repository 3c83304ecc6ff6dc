"""Scores replays against gold; each score has its definition and its 95 % interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from models.scores import Counts, Measure, bootstrap, micro_f1, paired_bootstrap, ratio, span_counts
from streams.replay.diff import Key, decisions, latest
from streams.replay.gold import NIL, Decision, Gold
from streams.replay.run import ReplayResult

#: The decisions of one kind in each record.
Column = Sequence[frozenset[Decision]]
DEAD_LETTERS = "A record that became a dead letter counts as a record without predictions."
OTHER_LABELS = "Predictions of a label that the gold never uses are left out."


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its percentile bootstrap interval of 95 %, records drawn with replacement."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Score:
    """One score, with its value for each chain."""

    name: str
    definition: str
    records: int
    """Records with gold of this kind."""
    values: tuple[Estimate, ...]
    """One for each chain, in the order of the chains."""
    difference: Estimate | None
    """Second chain minus first chain, on the same bootstrap draws; None for a single chain."""


def score_replays(results: Sequence[ReplayResult], gold: Gold) -> list[Score]:
    """The scores of every kind of decision that the gold has for a record of the replays."""
    records = [latest(r.compared) for r in results]
    keys = _keys_with_gold(results, gold)
    decided = [[decisions(outputs.get(key)) for key in keys] for outputs in records]
    scores: list[Score] = []
    for kind, measures_of in _KINDS.items():
        rows = [i for i, (_, id_) in enumerate(keys) if kind in gold.records[id_]]
        if not rows:
            continue
        expected = [gold.records[keys[i][1]][kind] for i in rows]
        predicted = [[frozenset(d for d in own[i] if d[0] == kind) for i in rows] for own in decided]
        measures, count = measures_of(gold.labels)
        scores += _estimated(measures, [count(column, expected) for column in predicted])
    return scores


def _keys_with_gold(results: Sequence[ReplayResult], gold: Gold) -> list[Key]:
    """The reports with gold; a dead letter of every chain has its id only, and no input topic."""
    keys = {key for r in results for key in latest(r.outputs) if key[1] in gold.records}
    with_output = {id_ for _, id_ in keys}
    dead = {d.key for r in results for d in r.dead if d.key in gold.records}
    return sorted(keys | {("", id_) for id_ in dead - with_output})


def _estimated(measures: Sequence[Measure], counts: Sequence[Counts]) -> list[Score]:
    intervals = [bootstrap(c, measures) for c in counts]
    paired = paired_bootstrap(counts[1], counts[0], measures) if len(counts) > 1 else {}
    return [
        Score(
            m.name,
            f"{m.definition} {DEAD_LETTERS}",
            len(counts[0]),
            tuple(Estimate(m.of(c), *own[m.name]) for c, own in zip(counts, intervals, strict=True)),
            Estimate(*paired[m.name]) if paired else None,
        )
        for m in measures
    ]


#: The measures of one kind of decision, and the function that counts (predicted, gold) for them.
Measures = tuple[list[Measure], Callable[[Column, Column], Counts]]


def _mentions(labels: Sequence[str]) -> Measures:
    correct = "a predicted mention is correct if start, end and label are those of a gold mention"
    micro = f"F1 over all mentions of all records; {correct}. {OTHER_LABELS}"
    measures = [micro_f1("mentions", micro, range(0, 3 * len(labels), 3))] if labels else []
    if len(labels) > 1:
        measures += [
            micro_f1(f"mentions {label}", f"F1 over the mentions labelled {label}; {correct}.", [3 * i])
            for i, label in enumerate(labels)
        ]

    def count(predicted: Column, gold: Column) -> Counts:
        spans = [[[(s, e, label) for _, s, e, label in own] for own in side] for side in (predicted, gold)]
        return span_counts(spans[0], spans[1], labels)

    return measures, count


def _relations(labels: Sequence[str]) -> Measures:
    definition = (
        "F1 over all relations of all records; a predicted relation is correct if the spans of its drug and "
        "its effect are those of a gold relation."
    )
    return [micro_f1("relations", definition, [0])], _triples


def _events(labels: Sequence[str]) -> Measures:
    definition = (
        "F1 over all coded events of all records; a predicted event is correct if its span and its preferred "
        "term are those of a gold event. NIL events are left out on both sides."
    )

    def count(predicted: Column, gold: Column) -> Counts:
        coded = [[frozenset(d for d in own if d[3] != NIL) for own in side] for side in (predicted, gold)]
        return _triples(coded[0], coded[1])

    return [micro_f1("coded events", definition, [0])], count


def _summaries(labels: Sequence[str]) -> Measures:
    definition = "Share of the records whose summary is identical to the gold summary."

    def count(predicted: Column, gold: Column) -> Counts:
        rows = [[float(p == g), 1.0] for p, g in zip(predicted, gold, strict=True)]
        return np.array(rows, dtype=np.float64)

    return [ratio("summaries", definition, (0, 1))], count


def _triples(predicted: Column, gold: Column) -> Counts:
    """Counts of true positive, predicted and gold decisions: (records, 3)."""
    rows = [(len(p & g), len(p), len(g)) for p, g in zip(predicted, gold, strict=True)]
    return np.array(rows, dtype=np.float64)


_KINDS: dict[str, Callable[[Sequence[str]], Measures]] = {
    "mention": _mentions,
    "relation": _relations,
    "event": _events,
    "summary": _summaries,
}
