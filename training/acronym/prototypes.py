"""Prototypes of long forms and how much they, the network and plain frequency count, chosen on rows that the
prototypes were not made of.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from models.acronym.m_network import MNetwork
from models.acronym.prototypes import Mixture, PrototypeEntry, Prototypes
from models.acronym.questions import Question, question
from models.acronym.surface_features import undotted
from models.types import Span
from training.evaluation.acronym import Row, scores

console = Console()
FOLDS = 5
#: Questions of one pass through the encoder.
BATCH = 64
NETWORK = (0.0, 0.25, 0.5, 1.0)
SIMILARITY = (10.0, 20.0, 30.0, 45.0)
PRIOR = (0.0, 0.4, 0.7, 1.0)
UNSEEN = (0.1, 0.3, 0.5)
#: The parts of the score, for a table of what each brings.
ALONE = {
    "frequency alone": Mixture(0, 0, 1),
    "network alone": Mixture(1, 0, 0),
    "prototypes alone": Mixture(0, 30, 0),
    "prototypes and frequency": Mixture(0, 30, 0.7),
}


class Known(NamedTuple):
    """Rows of a source with what the network says of them: logits of their long forms, and the mean near the
    acronym, (rows, dimension).
    """

    source: str
    rows: list[Row]
    network: list[list[float]]
    near: Tensor


def questions(rows: Sequence[Row]) -> list[Question]:
    return [question(r.text, r.span, Span(0, len(r.text)), r.senses) for r in rows]


def look(network: MNetwork, source: str, rows: Sequence[Row], with_network: bool = True) -> Known:
    """Asks the network; without it only the anchors are encoded and every logit is 0."""
    asked = questions(rows)
    logits: list[list[float]] = [[0.0] * len(q.long_forms) for q in asked]
    near = torch.zeros(len(asked), network.encoder.dimension)
    order = sorted(range(len(asked)), key=lambda i: len(rows[i].text))
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        if with_network:
            found, near[part] = network.scores([asked[i] for i in part])
            for i, row in zip(part, found, strict=True):
                logits[i] = row
        else:
            near[part] = network.near_vectors([asked[i] for i in part])
    return Known(source, list(rows), logits, near)


def prototypes(known: Sequence[Known], mixture: Mixture, counted: Mapping[str, Sequence[Row]]) -> Prototypes:
    """One of each long form in each source: the mean of its rows' unit vectors. How often a long form is
    meant is counted in `counted`, by source; 0 where a source only uses it.
    """
    uses, vectors = [], []
    for part in known:
        unit = torch.nn.functional.normalize(part.near, dim=-1)
        groups: dict[tuple[str, str], list[int]] = {}
        for i, row in enumerate(part.rows):
            groups.setdefault((undotted(row.short_form), row.gold), []).append(i)
        counts: dict[tuple[str, str], int] = {}
        for row in counted[part.source]:
            key = (undotted(row.short_form), row.gold)
            counts[key] = counts.get(key, 0) + 1
        for key, members in sorted(groups.items()):
            uses.append(PrototypeEntry(*key, part.source, counts.get(key, 0)))
            vectors.append(unit[members].mean(0))
    stacked = torch.stack(vectors) if vectors else torch.zeros(0, 1)
    return Prototypes(uses, stacked, mixture)


def folds(rows: Sequence[Row], seed: int) -> list[list[int]]:
    """Numbers of the rows in FOLDS parts, each with its share of every long form."""
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    order.sort(key=lambda i: (undotted(rows[i].short_form), rows[i].gold))
    return [order[n::FOLDS] for n in range(FOLDS)]


class Validated(NamedTuple):
    """A row with the parts of its score by prototypes of other rows; NaN where a long form has none."""

    row: Row
    network: Tensor
    similarity: Tensor
    prior: Tensor


def validate(known: Known, seed: int) -> list[Validated]:
    """Each row by the prototypes of the other folds."""
    out = []
    for held in folds(known.rows, seed):
        inside = set(held)
        rest = [i for i in range(len(known.rows)) if i not in inside]
        rows = [known.rows[i] for i in rest]
        part = Known(known.source, rows, [known.network[i] for i in rest], known.near[rest])
        made = prototypes([part], Mixture(unseen=float("nan")), {known.source: rows})
        out += [parts(made, known.rows[i], known.network[i], known.near[i]) for i in held]
    return out


def parts(made: Prototypes, row: Row, network: Sequence[float], near: Tensor) -> Validated:
    return Validated(
        row,
        torch.tensor(network).log_softmax(0),
        torch.tensor(made.similarities(row.short_form, row.senses, near)),
        torch.tensor(made.priors(row.short_form, row.senses)),
    )


def chosen(found: Sequence[Validated], mixture: Mixture) -> list[str]:
    """What a mixture takes in each row."""
    out = []
    for row, network, similarity, prior in found:
        cosine = similarity.nan_to_num(mixture.unseen)
        score = mixture.network * network + mixture.similarity * cosine + mixture.prior * prior
        out.append(row.senses[int(score.argmax())])
    return out


def accuracy(found: Sequence[Validated], mixture: Mixture) -> float:
    return scores([v.row for v in found], chosen(found, mixture))["accuracy"]


class _Stacked(NamedTuple):
    """Validated rows as tensors (rows, m), padded with what is never taken; whether the column is right."""

    network: Tensor
    similarity: Tensor
    prior: Tensor
    right: Tensor

    def accuracy(self, mixture: Mixture) -> float:
        cosine = self.similarity.nan_to_num(mixture.unseen)
        score = mixture.network * self.network + mixture.similarity * cosine + mixture.prior * self.prior
        taken = score.argmax(1, keepdim=True)
        return float(self.right.gather(1, taken).float().mean())


def _stacked(found: Sequence[Validated]) -> _Stacked:
    def pad(parts: Sequence[Tensor], value: float) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True, padding_value=value)

    right = [torch.tensor([sense == v.row.gold for sense in v.row.senses]) for v in found]
    return _Stacked(
        pad([v.network for v in found], 0.0),
        # No weight of another part makes up for this.
        pad([v.similarity for v in found], -1e6),
        pad([v.prior for v in found], 0.0),
        pad(right, 0),
    )


def best_mixture(known: Sequence[list[Validated]]) -> Mixture:
    """The weights with the best mean accuracy over the sources; the simplest of equals, which comes first."""
    grid = [Mixture(*values) for values in itertools.product(NETWORK, SIMILARITY, PRIOR, UNSEEN)]
    stacked = [_stacked(part) for part in known]
    return max(grid, key=lambda m: sum(part.accuracy(m) for part in stacked))


def table(known: Mapping[str, list[Validated]], best: Mixture) -> Table:
    """What each part brings, by source."""
    shown = Table("validation", *(f"{source} (n {len(rows)})" for source, rows in known.items()))
    for name, mixture in (ALONE | {"all, weights chosen": best}).items():
        shown.add_row(name, *(f"{accuracy(rows, mixture):.4f}" for rows in known.values()))
    return shown
