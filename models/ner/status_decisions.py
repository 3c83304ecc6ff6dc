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
from models.types import CODED_LABELS, DRUG, INDICATION, NO_EVENT, OWN, RELIEVED, STATUSES, Mention, Span

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


def decided(
    head: StatusHead, hidden: Tensor, cases: Sequence[Case], own_from: float, named_from: float
) -> list[list[Mention]]:
    """The mentions of each case, in text order: effects have their status, those that are no event are left
    out, and those that a drug is taken for or relieves become indications. A name becomes a mention where it
    is the writer's event with a probability of `named_from`. `hidden`: (pieces, dimension) of all sentences.
    """
    effects = [_effects(case) for case in cases]
    some = [(case, ranges) for case, ranges in zip(cases, effects, strict=True) if any(ranges)]
    probabilities: list[list[float]] = []
    if some:
        rules = [
            _rules(case.text, m)
            for case, ranges in some
            for m, p in zip(_all(case), ranges, strict=True)
            if p
        ]
        logits = head.statuses(
            hidden, [_places(*pair) for pair in some], torch.tensor(rules, device=hidden.device)
        )
        probabilities = logits.softmax(-1).tolist()
    remaining = iter(probabilities)
    return [
        _decided(case, ranges, remaining, own_from, named_from)
        for case, ranges in zip(cases, effects, strict=True)
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
    probabilities: Iterator[Sequence[float]],
    own_from: float,
    named_from: float,
) -> list[Mention]:
    """`probabilities`: of the statuses of each effect, in their order."""
    made: list[Mention] = []
    for i, (mention, effect) in enumerate(zip(_all(case), effects, strict=True)):
        is_named = i >= len(case.mentions)
        if effect is None:
            made += [] if is_named else [mention]
            continue
        own_probabilities = next(probabilities)
        with_status = _with_status(mention, own_probabilities, named_from if is_named else own_from)
        is_own = with_status is not None and with_status.status == OWN
        if with_status is None or (is_named and (case.answered_only or not is_own)):
            with_status = _affirmed(case.text, mention, own_probabilities)
        if with_status is not None:
            made.append(with_status)
    return sorted(made, key=in_text) if case.named else made


def _with_status(mention: Mention, probabilities: Sequence[float], own_from: float) -> Mention | None:
    others = range(1, len(STATUSES))
    best = 0 if probabilities[0] >= own_from else max(others, key=probabilities.__getitem__)
    status, score = STATUSES[best], round(probabilities[best], 4)
    if status == NO_EVENT:
        return None
    label = INDICATION if status in (RELIEVED, INDICATION_STATUS) else mention.label
    return replace(mention, label=label, status=status, status_score=score)


def _affirmed(text: str, mention: Mention, probabilities: Sequence[float]) -> Mention | None:
    """The writer's event where an answer beside the name says so ("hives: yes"), unless the head takes it for
    what a drug is taken for or relieves.
    """
    by_status = dict(zip(STATUSES, probabilities, strict=True))
    if max(by_status, key=lambda s: by_status[s]) in (RELIEVED, INDICATION_STATUS):
        return None
    if answer(text, mention.start, mention.end) is not True:
        return None
    return replace(mention, status=OWN, status_score=round(by_status[OWN], 4))


def _rules(text: str, mention: Mention) -> tuple[float, float, float]:
    stated = assertion(text, mention.start, mention.end)
    return float(stated.negated), float(stated.hypothetical), float(stated.other_experiencer)
