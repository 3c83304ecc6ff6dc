"""Gives the effects of a batch their statuses by the status head, which sees all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from models.assertion.answers import answer
from models.assertion.triggers import assertion
from models.encoder.word_pieces import WordPieces
from models.ner.status_head import Pieces, Places, StatusHead, piece_range
from models.text import PlacedWords
from models.types import (
    CODED_LABELS,
    DRUG,
    INDICATION,
    NEGATED,
    NO_EVENT,
    OWN,
    RELIEVED,
    STATUSES,
    SYMPTOM,
    Mention,
    Span,
)

#: The status of what a drug is taken for.
INDICATION_STATUS = "indication"


class Case(NamedTuple):
    """The mentions of a sentence."""

    text: str
    """all of it, in which the mentions have their places"""
    words: PlacedWords
    split: WordPieces
    """of the words"""
    first: int
    """row of the sentence's first piece among the hidden states"""
    mentions: Sequence[Mention]
    named: Sequence[Mention]
    """names of effects that were not tagged"""
    answered_only: bool = False
    """whether names become mentions only by an answer beside them"""


class _Judged(NamedTuple):
    """An effect as the status head sees it, and whether words deny it."""

    probabilities: Sequence[float]
    """of STATUSES"""
    is_denied: bool

    @property
    def likeliest(self) -> str:
        """The status; a denial needs words that deny, and without them the head is not sure of an event."""
        best = STATUSES[max(range(len(STATUSES)), key=self.probabilities.__getitem__)]
        return OWN if best == NEGATED and not self.is_denied else best

    def probability(self, status: str) -> float:
        """Of a status; where no words deny the effect, among the others than a denial."""
        others = 1.0 if self.is_denied else 1.0 - self.probabilities[STATUSES.index(NEGATED)]
        return self.probabilities[STATUSES.index(status)] / max(others, 1e-9)


def decided(
    head: StatusHead, hidden: Tensor, cases: Sequence[Case], own_from: float, named_from: float
) -> list[list[Mention]]:
    """The mentions of each case, in text order: effects have their status, those that are no event are left
    out, and those that a drug is taken for or relieves become indications. What is likeliest the writer's
    event, with a probability below `own_from`, is a symptom: neither an event nor denied. A name becomes a
    mention where it is the writer's event with a probability of `named_from`. `hidden`: (pieces, dimension)
    of all sentences.
    """
    effects = [_effects(case) for case in cases]
    some = [(case, ranges) for case, ranges in zip(cases, effects, strict=True) if any(ranges)]
    judged = iter(_judged(head, hidden, some) if some else [])
    return [
        _decided(case, ranges, judged, own_from, named_from)
        for case, ranges in zip(cases, effects, strict=True)
    ]


def _judged(
    head: StatusHead, hidden: Tensor, cases: Sequence[tuple[Case, list[Pieces | None]]]
) -> list[_Judged]:
    """What the head and the rules say of each effect, in text order."""
    effects = [
        (case.text, m)
        for case, ranges in cases
        for m, pieces in zip(_all(case), ranges, strict=True)
        if pieces
    ]
    rules = [assertion(text, m.start, m.end) for text, m in effects]
    stated = torch.tensor([[r.negated, r.hypothetical, r.other_experiencer] for r in rules]).to(hidden)
    logits = head.statuses(hidden, [_places(*pair) for pair in cases], stated)
    return [
        _Judged(p, rule.negated or assertion(text, m.start, m.end, clinical=True).negated)
        for p, rule, (text, m) in zip(logits.softmax(-1).tolist(), rules, effects, strict=True)
    ]


def in_text(mention: Mention) -> tuple[int, int, str]:
    """The order of mentions in a text."""
    return mention.start, mention.end, mention.label


def _all(case: Case) -> list[Mention]:
    return [*case.mentions, *case.named]


def _range(case: Case, mention: Mention) -> Pieces | None:
    pieces = piece_range(case.split, case.words, Span(mention.start, mention.end))
    return pieces and Pieces(case.first + pieces.first, case.first + pieces.last)


def _effects(case: Case) -> list[Pieces | None]:
    """The pieces of each mention and name that is an effect; None for others and without pieces."""
    return [_range(case, m) if m.label in CODED_LABELS else None for m in _all(case)]


def _places(case: Case, effects: Sequence[Pieces | None]) -> Places:
    drugs = [p for m in case.mentions if m.label == DRUG and (p := _range(case, m))]
    whole = Pieces(case.first, case.first + len(case.split.pieces))
    return Places(whole, [p for p in effects if p], drugs)


def _decided(
    case: Case,
    effects: Sequence[Pieces | None],
    judged: Iterator[_Judged],
    own_from: float,
    named_from: float,
) -> list[Mention]:
    """`judged`: each effect, in their order."""
    made: list[Mention] = []
    for i, (mention, effect) in enumerate(zip(_all(case), effects, strict=True)):
        is_named = i >= len(case.mentions)
        if effect is None:
            made += [] if is_named else [mention]
            continue
        one = next(judged)
        read = _with_status(mention, one, named_from if is_named else own_from)
        needs_answer = read is None or read.label == SYMPTOM
        if read is not None and is_named:
            needs_answer |= case.answered_only or read.status != OWN
        if needs_answer:
            read = _affirmed(case.text, mention, one) or (None if is_named else read)
        made += [read] if read else []
    return sorted(made, key=in_text) if case.named else made


def _with_status(mention: Mention, judged: _Judged, own_from: float) -> Mention | None:
    is_own = judged.probability(OWN) >= own_from
    status = OWN if is_own else judged.likeliest
    if status == NO_EVENT:
        return None
    label = mention.label
    if status in (RELIEVED, INDICATION_STATUS):
        label = INDICATION
    elif status == OWN and not is_own:
        label = SYMPTOM
    return replace(mention, label=label, status=status, status_score=round(judged.probability(status), 4))


def _affirmed(text: str, mention: Mention, judged: _Judged) -> Mention | None:
    """The writer's event where an answer beside the name says so ("hives: yes"), unless the head takes it for
    what a drug is taken for or relieves.
    """
    if (
        judged.likeliest in (RELIEVED, INDICATION_STATUS)
        or answer(text, mention.start, mention.end) is not True
    ):
        return None
    return replace(mention, status=OWN, status_score=round(judged.probability(OWN), 4))
