"""Prototypes of long forms, and the weights of prototypes, network and sense priors in a long form's score,
chosen on rows that are in no prototype.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import torch
from rich.table import Table
from torch import Tensor

from models.acronym import cues, frequencies
from models.acronym.cues import CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.m_network import MNetwork
from models.acronym.prototypes import Mixture, PrototypeEntry, Prototypes
from models.acronym.questions import Question, question
from models.acronym.surface_features import undotted
from models.types import Span
from training.common.batching import by_length
from training.evaluation.acronym import Row, scores

FOLDS = 5
#: Questions of one forward pass.
BATCH = 64
# The grid of weights.
NETWORK = (0.0, 0.25, 0.5, 1.0)
SIMILARITY = (5.0, 10.0, 15.0, 20.0)
PRIOR = (0.0, 0.4, 0.7, 1.0, 1.5)
UNSEEN = (0.1, 0.3, 0.5)
CUES = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)
WRITTEN_RAISED = (0.0, 0.05, 0.15)
#: Weights of sources that count less than others. Senses that only written sentences show are rare: 18 of 337
#: definitions in abstracts have one. Where they counted like others, SOB became "side of bed".
SOURCE_WEIGHTS = {"unseen": 0.1}
#: Mixtures that show what each part of the score contributes.
ABLATIONS = {
    "frequency alone": Mixture(0, 0, 1),
    "network alone": Mixture(1, 0, 0),
    "prototypes alone": Mixture(0, 30, 0),
    "prototypes and frequency": Mixture(0, 30, 0.7),
    "cue words and frequency": Mixture(0, 0, 1, cues=3),
}


class EncodedRows(NamedTuple):
    """Rows of a source with the outputs of the network: logits of their long forms, and the mean vector near
    the acronym, (rows, dimension).
    """

    source: str
    rows: list[Row]
    logits: list[list[float]]
    near: Tensor

    def part(self, indices: Sequence[int]) -> EncodedRows:
        """The rows of these indices."""
        rows = [self.rows[i] for i in indices]
        return EncodedRows(self.source, rows, [self.logits[i] for i in indices], self.near[list(indices)])

    def without(self, senses: Set[tuple[str, str]]) -> EncodedRows:
        """The rows of other senses, each a short form with a long form."""
        return self.part([i for i, row in enumerate(self.rows) if sense_of(row) not in senses])


def questions(rows: Sequence[Row]) -> list[Question]:
    return [question(r.text, r.span, Span(0, len(r.text)), r.senses) for r in rows]


def encode_rows(network: MNetwork, source: str, rows: Sequence[Row], with_logits: bool = True) -> EncodedRows:
    """Runs the network on rows; without logits only the anchors are encoded, and every logit is 0."""
    asked = questions(rows)
    logits: list[list[float]] = [[0.0] * len(q.long_forms) for q in asked]
    near = torch.zeros(len(asked), network.encoder.dimension)
    for batch in by_length([len(row.text) for row in rows], BATCH):
        part = [asked[i] for i in batch]
        if with_logits:
            answers, near[batch] = network.scores(part)
            for i, row in zip(batch, answers, strict=True):
                logits[i] = row
        else:
            near[batch] = network.near_vectors(part)
    return EncodedRows(source, list(rows), logits, near)


class Estimates(NamedTuple):
    """What is known of long forms without rows of a corpus."""

    frequencies: SenseFrequencies = SenseFrequencies()
    cue_words: CueWords = CueWords()

    @classmethod
    def clinical(cls) -> Estimates:
        """Those that were written for this project."""
        return cls(SenseFrequencies.load(frequencies.CLINICAL), CueWords.load(cues.CLINICAL))


class Usage(NamedTuple):
    """What is known of how often a short form has each long form, and beside which words."""

    counted: Mapping[str, Sequence[Row]] = {}
    """the rows that are counted, by source; a long form that they lack has 0"""
    estimated: Estimates = Estimates()


def build_prototypes(parts: Sequence[EncodedRows], mixture: Mixture, usage: Usage) -> Prototypes:
    """One of each long form in each source: the mean of its rows' unit vectors."""
    uses, vectors = [], []
    for part in parts:
        unit = torch.nn.functional.normalize(part.near, dim=-1)
        members: dict[tuple[str, str], list[int]] = {}
        for i, row in enumerate(part.rows):
            members.setdefault(sense_of(row), []).append(i)
        counts = Counter(sense_of(row) for row in usage.counted.get(part.source, ()))
        for sense, indices in sorted(members.items()):
            uses.append(PrototypeEntry(*sense, part.source, counts[sense]))
            vectors.append(unit[indices].mean(0))
    stacked = torch.stack(vectors) if vectors else torch.zeros(0, 1)
    return Prototypes(uses, stacked, mixture, usage.estimated.frequencies)


def sense_of(row: Row) -> tuple[str, str]:
    """Short form without full stops, and long form."""
    return undotted(row.short_form), row.gold


def folds(rows: Sequence[Row], seed: int) -> list[list[int]]:
    """Indices of the rows in FOLDS parts, each with its share of every long form."""
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    order.sort(key=lambda i: sense_of(rows[i]))
    return [order[n::FOLDS] for n in range(FOLDS)]


class RowScores(NamedTuple):
    """The parts of the score of each long form of a row, (m,) each, by prototypes of other rows; the
    similarity of a long form without prototype is NaN.
    """

    row: Row
    network: Tensor
    similarity: Tensor
    prior: Tensor
    cues: Tensor
    only_written: Tensor
    """whether the long form has no other prototypes than those of written sentences"""


def cross_validated(
    part: EncodedRows, seed: int, more: Sequence[EncodedRows], estimated: Estimates
) -> list[RowScores]:
    """Each row scored by the prototypes of the other folds and of `more`, in which nothing is counted."""
    scored = []
    for held in folds(part.rows, seed):
        inside = set(held)
        rest = part.part([i for i in range(len(part.rows)) if i not in inside])
        scored += scored_by([rest, *more], part.part(held), Usage({part.source: rest.rows}, estimated))
    return scored


def scored_by(sources: Sequence[EncodedRows], asked: EncodedRows, usage: Usage) -> list[RowScores]:
    """The rows of `asked` scored by prototypes of `sources`."""
    prototypes = build_prototypes(sources, Mixture(unseen=float("nan")), usage)
    rows = zip(asked.rows, asked.logits, asked.near, strict=True)
    cue_words = usage.estimated.cue_words
    found = [cue_words.scores(q.left, q.short_form, q.right, q.long_forms) for q in questions(asked.rows)]
    return [
        RowScores(
            row,
            torch.tensor(logits).log_softmax(0),
            torch.tensor(prototypes.similarities(row.short_form, row.senses, near)),
            torch.tensor(prototypes.priors(row.short_form, row.senses)),
            torch.tensor(own),
            torch.tensor(prototypes.only_written(row.short_form, row.senses)),
        )
        for (row, logits, near), own in zip(rows, found, strict=True)
    ]


def best_long_forms(scored: Sequence[RowScores], mixture: Mixture) -> list[str]:
    """The long form of each row with the highest score under a mixture."""
    return [s.row.senses[int(mixed(s, mixture).argmax())] for s in scored]


def mixed(scored: RowScores | _Stacked, mixture: Mixture) -> Tensor:
    """(m,) or (rows, m): the score of each long form under a mixture."""
    cosine = scored.similarity.nan_to_num(mixture.unseen) + mixture.written * scored.only_written
    score = mixture.network * scored.network + mixture.similarity * cosine
    return score + mixture.prior * scored.prior + mixture.cues * scored.cues


def accuracy(scored: Sequence[RowScores], mixture: Mixture) -> float:
    return scores([s.row for s in scored], best_long_forms(scored, mixture))["accuracy"]


class _Stacked(NamedTuple):
    """Scored rows as tensors (rows, m), padded with long forms that never win, and which column is right."""

    network: Tensor
    similarity: Tensor
    prior: Tensor
    cues: Tensor
    only_written: Tensor
    right: Tensor

    def accuracy(self, mixture: Mixture) -> float:
        best = mixed(self, mixture).argmax(1, keepdim=True)
        return float(self.right.gather(1, best).float().mean())


def _stacked(scored: Sequence[RowScores]) -> _Stacked:
    def pad(parts: Sequence[Tensor], value: float) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True, padding_value=value)

    right = [torch.tensor([sense == s.row.gold for sense in s.row.senses]) for s in scored]
    return _Stacked(
        pad([s.network for s in scored], 0.0),
        # So low that no weight of another part compensates for it.
        pad([s.similarity for s in scored], -1e6),
        pad([s.prior for s in scored], 0.0),
        pad([s.cues for s in scored], 0.0),
        pad([s.only_written for s in scored], 0),
        pad(right, 0),
    )


def best_mixture(
    sources: Mapping[str, list[RowScores]], weights: Mapping[str, float] = SOURCE_WEIGHTS
) -> Mixture:
    """The weights with the best mean accuracy over the sources, which count by `weights`, others 1; of equal
    ones the first of the grid, which is the simplest.
    """
    parts = itertools.product(NETWORK, SIMILARITY, PRIOR, UNSEEN, CUES, WRITTEN_RAISED)
    grid = [Mixture(a, b, c, d, cues=near, written=raised) for a, b, c, d, near, raised in parts]
    stacked = [(weights.get(name, 1.0), _stacked(part)) for name, part in sources.items() if part]
    return max(grid, key=lambda m: sum(weight * part.accuracy(m) for weight, part in stacked))


def ablation_table(sources: Mapping[str, list[RowScores]], best: Mixture) -> Table:
    """Accuracy with each part of the score alone, by source."""
    table = Table("validation", *(f"{source} (n {len(rows)})" for source, rows in sources.items()))
    for name, mixture in (ABLATIONS | {"all, weights chosen": best}).items():
        table.add_row(name, *(f"{accuracy(rows, mixture):.4f}" for rows in sources.values()))
    return table
