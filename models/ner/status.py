"""The status head: classifies each effect as an event of the writer's or not, and each pair of effect and
drug as related or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.assertion.rules import assertion
from models.encoder.precision import in_32_bits
from models.encoder.word_pieces import WordPieces
from models.types import CODED_LABELS, DRUG, INDICATION, NO_EVENT, OWN, RELIEVED, STATUSES, Mention, Span

#: Width of the hidden layers.
WIDTH = 128
#: Flags of the rules of models.assertion: negated, hypothetical, other experiencer.
N_RULES = 3


class Pieces(NamedTuple):
    """Half-open range of the word pieces of a text."""

    first: int
    last: int


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
            return self._logits(self.dropout(hidden.float()), mentions, drugs, rules.float())

    def _logits(
        self, hidden: Tensor, mentions: Sequence[Pieces], drugs: Sequence[Pieces], rules: Tensor
    ) -> tuple[Tensor, Tensor]:
        own = torch.stack([hidden[m.first : m.last].mean(0) for m in mentions])
        scores = self.query(own) @ hidden.T / self.dimension**0.5
        context = scores.softmax(-1) @ hidden
        named = [hidden[d.first : d.last].mean(0) for d in drugs]
        nearest = torch.stack(
            [named[_nearest(m, drugs)] if named else hidden.new_zeros(self.dimension) for m in mentions]
        )
        statuses = self.status(torch.cat([own, context, nearest, rules.to(own.dtype)], dim=-1))
        if not named:
            return statuses, hidden.new_zeros(len(mentions), 0)
        each, drug = own.unsqueeze(1), torch.stack(named).unsqueeze(0)
        shape = (len(mentions), len(named), self.dimension)
        places = torch.tensor([[_place(m, d) for d in drugs] for m in mentions], dtype=own.dtype)
        pairs = [each.expand(shape), drug.expand(shape), each * drug, places.to(own.device)]
        return statuses, self.pair(torch.cat(pairs, dim=-1)).squeeze(-1)


def judged(  # noqa: PLR0913, PLR0917  a sentence and its parts
    head: StatusHead,
    text: str,
    mentions: Sequence[Mention],
    split: WordPieces,
    words: Sequence[Span],
    hidden: Sequence[Tensor],
    own_from: float,
) -> list[Mention]:
    """The mentions, in which each effect has its status. An effect that is no event is left out; one that a
    drug is taken for, or relieves, becomes an indication. `split`, `words` and `hidden` are the word pieces,
    words and hidden states of the sentence.
    """
    places = [piece_range(split, words, Span(m.start, m.end)) for m in mentions]
    effects = [i for i, m in enumerate(mentions) if m.label in CODED_LABELS and places[i]]
    if not effects:
        return list(mentions)
    drugs = [p for m, p in zip(mentions, places, strict=True) if m.label == DRUG and p]
    rules = [_rules(text, mentions[i]) for i in effects]
    states = torch.cat(list(hidden))
    logits, _ = head(
        states, [p for i in effects if (p := places[i])], drugs, torch.tensor(rules, device=states.device)
    )
    made: list[Mention | None] = list(mentions)
    for i, probabilities in zip(effects, logits.float().softmax(-1).tolist(), strict=True):
        made[i] = _with_status(mentions[i], probabilities, own_from)
    return [m for m in made if m is not None]


def _with_status(mention: Mention, probabilities: Sequence[float], own_from: float) -> Mention | None:
    by_status = dict(zip(STATUSES, probabilities, strict=True))
    own = by_status.pop(OWN)
    status = OWN if own >= own_from else max(by_status, key=lambda s: by_status[s])
    if status == NO_EVENT:
        return None
    score = round(own if status == OWN else by_status[status], 4)
    label = INDICATION if status in (RELIEVED, "indication") else mention.label
    return replace(mention, label=label, status=status, status_score=score)


def _rules(text: str, mention: Mention) -> tuple[float, float, float]:
    found = assertion(text, mention.start, mention.end)
    return float(found.negated), float(found.hypothetical), float(found.other_experiencer)


def piece_range(split: WordPieces, words: Sequence[Span], span: Span) -> Pieces | None:
    """The pieces of the words that a span overlaps; None where they have none."""
    inside = [w for w, s in enumerate(words) if s.start < span.end and span.start < s.end and split.count[w]]
    if not inside:
        return None
    return Pieces(split.first[inside[0]], split.first[inside[-1]] + split.count[inside[-1]])


def _place(mention: Pieces, drug: Pieces) -> list[float]:
    """The distance in pieces, at most 1 (64 pieces), and whether the drug is before the mention."""
    return [min(1.0, _distance(mention, drug) / 64), float(drug.first < mention.first)]


def _nearest(mention: Pieces, drugs: Sequence[Pieces]) -> int:
    return min(range(len(drugs)), key=lambda i: _distance(mention, drugs[i]))


def _distance(mention: Pieces, drug: Pieces) -> int:
    return max(drug.first - mention.last, mention.first - drug.last, 0)
