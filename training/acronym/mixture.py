"""Weights of network, prototypes, priors and cue words in a long form's score, chosen on rows that are in no
prototype.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from models.acronym.prototypes import Mixture
from training.acronym.data import questions, sense_of
from training.acronym.prototypes import EncodedRows, Estimates, Examples, build_prototypes
from training.common.corpora import CorpusError
from training.common.long_forms import key
from training.evaluation.acronym import Row

FOLDS = 5
# The grid of weights.
NETWORK = (0.0, 0.25, 0.5, 1.0)
SIMILARITY = (5.0, 10.0, 15.0, 20.0)
PRIOR = (0.0, 0.4, 0.7, 1.0, 1.5)
UNSEEN = (0.1, 0.3, 0.5)
CUES = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)
#: Weights of sources that count less than others. Senses that only written sentences show are rare: 18 of 337
#: definitions in abstracts have one. Where they counted like others, SOB became "side of bed".
SOURCE_WEIGHTS = {"unseen": 0.1}


class RowScores(NamedTuple):
    """The parts of the score of each long form of a row, (m,) each, by prototypes of other rows; of a long
    form without prototype the similarity is NaN. Of several rows they are (rows, m).
    """

    network: Tensor
    similarity: Tensor
    prior: Tensor
    cues: Tensor
    right: Tensor
    """1 for the right long form, else 0"""

    def accuracy(self, mixture: Mixture) -> float:
        """The share of the rows whose right long form scores highest."""
        score = mixture.network * self.network + mixture.prior * self.prior + mixture.cues * self.cues
        score = score + mixture.similarity * self.similarity.nan_to_num(mixture.unseen)
        return float(self.right.gather(1, score.argmax(1, keepdim=True)).mean())


def stacked(scored: Sequence[RowScores]) -> RowScores:
    """Padded with long forms whose similarity is so low that they never win."""
    padding = (0.0, -1e6, 0.0, 0.0, 0.0)
    parts = zip(zip(*scored, strict=True), padding, strict=True)
    return RowScores(*(pad_sequence(list(rows), True, value) for rows, value in parts))


def scored_by(
    sources: Sequence[EncodedRows],
    asked: EncodedRows,
    counted: Mapping[str, Sequence[Row]],
    estimates: Estimates,
) -> list[RowScores]:
    """The rows of `asked` scored by prototypes of `sources`."""
    known = build_prototypes(sources, Mixture(unseen=float("nan")), counted, estimates.frequencies)
    scored = []
    for q, row, logits, near in zip(questions(asked.rows), *asked[1:], strict=True):
        parts = (
            torch.tensor(logits).log_softmax(0),
            torch.tensor(known.similarities(row.short_form, row.senses, near)),
            torch.tensor(known.priors(row.short_form, row.senses)),
            torch.tensor(estimates.cue_words.scores(q.left, q.short_form, q.right, q.long_forms)),
            torch.tensor([float(sense == row.gold) for sense in row.senses]),
        )
        scored.append(RowScores(*parts))
    return scored


def cross_validated(
    asked: EncodedRows, others: Sequence[EncodedRows], seed: int, estimates: Estimates, *, shown: bool
) -> list[RowScores]:
    """Each row scored by the prototypes of `others`, by what is counted in the other folds of its source and,
    where `shown`, by the prototypes of these.
    """
    scored = []
    for held in folds(asked.rows, seed):
        inside = set(held)
        rest = asked.part([i for i in range(len(asked.rows)) if i not in inside])
        sources = [rest, *others] if shown else others
        scored += scored_by(sources, asked.part(held), {asked.source: rest.rows}, estimates)
    return scored


def folds(rows: Sequence[Row], seed: int) -> list[list[int]]:
    """Indices of the rows in FOLDS parts, each with its share of every long form."""
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    order.sort(key=lambda i: sense_of(rows[i]))
    return [order[n::FOLDS] for n in range(FOLDS)]


def scored_as_unseen(
    asked: EncodedRows, used: EncodedRows, written: EncodedRows, seed: int, estimates: Estimates
) -> list[RowScores]:
    """The rows of the senses of written sentences, as if these alone showed them: cross-validation in which a
    part of the senses is taken out of all other sources.
    """
    scored = []
    for part in sense_parts(set(map(sense_of, asked.rows)) & set(map(sense_of, written.rows)), seed):
        rest = asked.of(part, others=True)
        sources = [rest, used.of(part, others=True), written]
        scored += scored_by(sources, asked.of(part), {asked.source: rest.rows}, estimates)
    return scored


def sense_parts(senses: Set[tuple[str, str]], seed: int) -> list[set[tuple[str, str]]]:
    """The senses in FOLDS parts of equal size; spellings of one sense are in the same part."""
    keys = sorted({(short, key(form)) for short, form in senses})
    random.Random(seed).shuffle(keys)
    number = {sense: n % FOLDS for n, sense in enumerate(keys)}
    return [{s for s in senses if number[s[0], key(s[1])] == n} for n in range(FOLDS)]


def validation_scores(examples: Examples, seed: int, estimates: Estimates) -> dict[str, list[RowScores]]:
    """Rows scored by prototypes that they are not in: of CASI, definitions, CASI as if only written sentences
    showed its senses, and sentences that were written to choose weights.
    """
    casi, used, defined, written, sentences = examples
    by_source = {
        "casi": cross_validated(casi, [written], seed, estimates, shown=True),
        "ade": cross_validated(defined, [used, written], seed, estimates, shown=False),
        "unseen": scored_as_unseen(casi, used, written, seed, estimates),
        "sentences": scored_by([casi, used, written], sentences, examples.counted, estimates),
    }
    return {name: rows for name, rows in by_source.items() if rows}


def best_mixture(sources: Mapping[str, Sequence[RowScores]]) -> Mixture:
    """The weights with the best mean accuracy over the sources, which count by SOURCE_WEIGHTS; of equal ones
    the first of the grid, which is the simplest. Raises CorpusError where there is no row.
    """
    if not sources:
        raise CorpusError("no row to choose weights on: the dictionary has no acronym of a source")
    parts = itertools.product(NETWORK, SIMILARITY, PRIOR, UNSEEN, CUES)
    grid = [Mixture(a, b, c, d, cues=near) for a, b, c, d, near in parts]
    tables = [(SOURCE_WEIGHTS.get(name, 1.0), stacked(rows)) for name, rows in sources.items()]
    return max(grid, key=lambda mixture: sum(weight * table.accuracy(mixture) for weight, table in tables))
