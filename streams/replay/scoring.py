"""Scores of replays against gold, each with its definition and its 95 % interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from models.scores import Counts, Measure, bootstrap, micro_f1, paired_bootstrap, ratio, span_counts
from streams.replay.diff import Key, decisions, latest
from streams.replay.gold import NIL, Decision, Gold
from streams.replay.run import Replayed

#: Decisions of one kind, of each record.
Column = Sequence[frozenset[Decision]]
COUNTED = "A record that became a dead letter counts as deciding nothing."
OTHER_LABELS = "Predictions of a label that the gold never gives are left out."


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its percentile bootstrap interval of 95 %, records drawn with replacement."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Score:
    """One score of each chain."""

    name: str
    definition: str
    records: int
    """Records with gold of this kind."""
    values: tuple[Estimate, ...]
    """For each chain, in their order."""
    difference: Estimate | None
    """The second chain less the first, on the same draws; None for a single chain."""


def scored(chains: Sequence[Replayed], gold: Gold) -> list[Score]:
    """The scores of every kind that the gold has for a record of the replays."""
    found = [latest(c.outputs) for c in chains]
    keys = _rows(chains, gold)
    by_chain = [[decisions(outputs.get(key)) for key in keys] for outputs in found]
    scores: list[Score] = []
    for kind, measured in _KINDS.items():
        rows = [i for i, (_, id_) in enumerate(keys) if kind in gold.records[id_]]
        if not rows:
            continue
        right = [gold.records[keys[i][1]][kind] for i in rows]
        sides = [[frozenset(d for d in own[i] if d[0] == kind) for i in rows] for own in by_chain]
        measures, count = measured(gold.labels)
        scores += _estimated(measures, [count(side, right) for side in sides])
    return scores


def _rows(chains: Sequence[Replayed], gold: Gold) -> list[Key]:
    """The reports with gold; one that died in every chain is known by its key alone."""
    keys = {key for c in chains for key in latest(c.outputs) if key[1] in gold.records}
    alive = {id_ for _, id_ in keys}
    died = {d.key for c in chains for d in c.dead if d.key in gold.records}
    return sorted(keys | {("", id_) for id_ in died - alive})


def _estimated(measures: Sequence[Measure], counts: Sequence[Counts]) -> list[Score]:
    intervals = [bootstrap(c, measures) for c in counts]
    paired = paired_bootstrap(counts[1], counts[0], measures) if len(counts) > 1 else {}
    return [
        Score(
            m.name,
            f"{m.definition} {COUNTED}",
            len(counts[0]),
            tuple(Estimate(m.of(c), *own[m.name]) for c, own in zip(counts, intervals, strict=True)),
            Estimate(*paired[m.name]) if paired else None,
        )
        for m in measures
    ]


Measured = tuple[list[Measure], Callable[[Column, Column], Counts]]


def _mentions(labels: Sequence[str]) -> Measured:
    right = "a predicted mention is right if start, end and label are those of a gold mention"
    micro = f"F1 over all mentions of all records; {right}. {OTHER_LABELS}"
    measures = [micro_f1("mentions", micro, range(0, 3 * len(labels), 3))] if labels else []
    if len(labels) > 1:
        measures += [
            micro_f1(f"mentions {label}", f"F1 over the mentions labelled {label}; {right}.", [3 * i])
            for i, label in enumerate(labels)
        ]

    def count(predicted: Column, gold: Column) -> Counts:
        spans = [[[(s, e, label) for _, s, e, label in own] for own in side] for side in (predicted, gold)]
        return span_counts(spans[0], spans[1], labels)

    return measures, count


def _relations(labels: Sequence[str]) -> Measured:
    definition = (
        "F1 over all relations of all records; a predicted relation is right if the spans of its drug and "
        "its effect are those of a gold relation."
    )
    return [micro_f1("relations", definition, [0])], _triples


def _events(labels: Sequence[str]) -> Measured:
    definition = (
        "F1 over all coded events of all records; a predicted event is right if its span and its preferred "
        "term are those of a gold event. What is coded to nothing is left out on both sides."
    )

    def count(predicted: Column, gold: Column) -> Counts:
        coded = [[frozenset(d for d in own if d[3] != NIL) for own in side] for side in (predicted, gold)]
        return _triples(coded[0], coded[1])

    return [micro_f1("coded events", definition, [0])], count


def _summaries(labels: Sequence[str]) -> Measured:
    definition = "Share of the records whose summary is the gold summary to the letter."

    def count(predicted: Column, gold: Column) -> Counts:
        rows = [[float(p == g), 1.0] for p, g in zip(predicted, gold, strict=True)]
        return np.array(rows, dtype=np.float64)

    return [ratio("summaries", definition, (0, 1))], count


def _triples(predicted: Column, gold: Column) -> Counts:
    """True positives, predicted and gold decisions of each record."""
    rows = [(len(p & g), len(p), len(g)) for p, g in zip(predicted, gold, strict=True)]
    return np.array(rows, dtype=np.float64)


_KINDS: dict[str, Callable[[Sequence[str]], Measured]] = {
    "mention": _mentions,
    "relation": _relations,
    "event": _events,
    "summary": _summaries,
}
