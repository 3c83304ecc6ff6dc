"""The status head: classifies each effect as an event of the writer's or not, and each pair of effect and
drug as related or not.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.encoder.number_formats import in_32_bits
from models.encoder.word_pieces import WordPieces
from models.text import PlacedWords
from models.types import STATUSES, Span

#: Width of the hidden layers.
WIDTH = 128
#: Flags of the rules of models.assertion: negated, hypothetical, other experiencer.
N_RULES = 3


class Pieces(NamedTuple):
    """Half-open range of the word pieces of a text."""

    first: int
    last: int


class Places(NamedTuple):
    """Where the pieces of a sentence, and of its mentions and drugs, are among those of several sentences."""

    whole: Pieces
    mentions: Sequence[Pieces]
    drugs: Sequence[Pieces]


class StatusHead(nn.Module):
    """Classes of mentions, and pairs of mentions and drugs, from the hidden states of their text.

    A mention is the mean of its pieces. Its context is attention over the text with the mention as query.
    """

    def __init__(self, dimension: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dimension = dimension
        self.dropout = nn.Dropout(dropout)
        self.query = nn.Linear(dimension, dimension)
        self.status = nn.Sequential(
            nn.Linear(3 * dimension + N_RULES, WIDTH), nn.GELU(), nn.Linear(WIDTH, len(STATUSES))
        )
        self.pair = nn.Sequential(nn.Linear(3 * dimension + 2, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1))

    def forward(
        self, hidden: Tensor, mentions: Sequence[Pieces], drugs: Sequence[Pieces], rules: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits (mentions, statuses) and (mentions, drugs) from the hidden states (pieces, dimension) of one
        text and `rules`, (mentions, N_RULES) of 0 and 1.
        """
        with in_32_bits(hidden.device):
            hidden = self.dropout(hidden.float())
            means = _means(hidden, mentions)
            statuses = self._statuses(hidden, means, [Places(Pieces(0, len(hidden)), mentions, drugs)], rules)
            return statuses, self._pairs(hidden, means, mentions, drugs)

    def statuses(self, hidden: Tensor, places: Sequence[Places], rules: Tensor) -> Tensor:
        """Logits (mentions, statuses) of the mentions of several sentences, in order, from the hidden states
        (pieces, dimension) of all; `rules` as in `forward`.
        """
        with in_32_bits(hidden.device):
            hidden = self.dropout(hidden.float())
            means = _means(hidden, [m for p in places for m in p.mentions])
            return self._statuses(hidden, means, places, rules)

    def _statuses(self, hidden: Tensor, means: Tensor, places: Sequence[Places], rules: Tensor) -> Tensor:
        """`means`: (mentions, dimension), their means."""
        queries = (self.query(means) / self.dimension**0.5).split([len(p.mentions) for p in places])
        context = []
        for query, place in zip(queries, places, strict=True):
            states = hidden[place.whole.first : place.whole.last]
            context.append((query @ states.T).softmax(-1) @ states)
        nearest = _means(hidden, [_nearest(m, p.drugs) for p in places for m in p.mentions])
        described = [means, torch.cat(context), nearest, rules.to(means)]
        statuses: Tensor = self.status(torch.cat(described, dim=-1))
        return statuses

    def _pairs(
        self, hidden: Tensor, means: Tensor, mentions: Sequence[Pieces], drugs: Sequence[Pieces]
    ) -> Tensor:
        """Logits (mentions, drugs)."""
        if not drugs:
            return hidden.new_zeros(len(mentions), 0)
        shape = (len(mentions), len(drugs), self.dimension)
        each, drug = means.unsqueeze(1), _means(hidden, drugs).unsqueeze(0)
        places = torch.tensor([[_place(m, d) for d in drugs] for m in mentions]).to(means)
        pairs: Tensor = self.pair(
            torch.cat([each.expand(shape), drug.expand(shape), each * drug, places], -1)
        )
        return pairs.squeeze(-1)


def _means(hidden: Tensor, ranges: Sequence[Pieces]) -> Tensor:
    """(ranges, dimension): the mean hidden state of each range, zeros where it is empty."""
    rows = [row for r in ranges for row in range(r.first, r.last)]
    starts = [0, *itertools.accumulate(r.last - r.first for r in ranges)][:-1]
    tensors = (torch.tensor(numbers, dtype=torch.long, device=hidden.device) for numbers in (rows, starts))
    index, offsets = tensors
    return functional.embedding_bag(index, hidden, offsets, mode="mean")


def piece_range(split: WordPieces, words: PlacedWords, span: Span) -> Pieces | None:
    """The pieces of the words that a span overlaps; None where they have none."""
    inside = [w for w in words.overlapping(span) if split.count[w]]
    if not inside:
        return None
    return Pieces(split.first[inside[0]], split.first[inside[-1]] + split.count[inside[-1]])


def _place(mention: Pieces, drug: Pieces) -> list[float]:
    """The distance in pieces, at most 1 (64 pieces), and whether the drug is before the mention."""
    return [min(1.0, _distance(mention, drug) / 64), float(drug.first < mention.first)]


def _nearest(mention: Pieces, drugs: Sequence[Pieces]) -> Pieces:
    """The drug that is nearest to the mention; an empty range where there is none."""
    return min(drugs, key=lambda drug: _distance(mention, drug), default=Pieces(0, 0))


def _distance(mention: Pieces, drug: Pieces) -> int:
    return max(drug.first - mention.last, mention.first - drug.last, 0)
