"""Training targets of the status head of CONORM-NER: effects with their statuses and drugs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.assertion.triggers import assertion
from models.types import CODED_LABELS, DRUG, NEGATED, NO_EVENT, OWN, RELIEVED, STATUSES, Span
from training.common.corpora import GoldText
from training.evaluation.alarms import named_terms
from training.teaching.markup import NONE, MarkedText

INDICATION = "indication"
NOT_OWN = tuple(s for s in STATUSES if s != OWN)
#: The statuses of an indication of the teaching corpus by its flag.
_INDICATIONS: dict[str | None, tuple[str, ...]] = {
    None: (INDICATION,),
    RELIEVED: (RELIEVED,),
    "wanted": (RELIEVED, INDICATION, NO_EVENT),
    "past": (INDICATION, RELIEVED, NO_EVENT),
    "negated": (INDICATION, NEGATED, NO_EVENT),
}


class StatusTarget(NamedTuple):
    """An effect at `start:end` of its text."""

    start: int
    end: int
    statuses: tuple[str, ...]
    """those that are right"""
    rules: tuple[bool, bool, bool]
    """what the rules say: negated, hypothetical, other experiencer"""
    drugs: tuple[int, ...] | None
    """which of the text's drugs it is due to; None: not known"""


def drugs_of(text: GoldText, found: Sequence[Span]) -> list[Span]:
    """The annotated drugs, and those of `found` that overlap none of them."""
    drugs = [Span(m.start, m.end) for m in text.mentions if m.label == DRUG]
    return drugs + [f for f in found if not any(f.start < d.end and d.start < f.end for d in drugs)]


def corpus_targets(text: GoldText) -> list[StatusTarget]:
    """Of a text of a public corpus: annotated effects are events of the patient's, indications and symptoms
    are what a drug is taken for or relieves, and names of the terminology that nobody annotated are no event.

    A relation names the drug of an effect; without any the drugs are not known.
    """
    drugs = [i for i, m in enumerate(text.mentions) if m.label == DRUG]
    targets = []
    for i, m in enumerate(text.mentions):
        if m.label == DRUG:
            continue
        coded = m.label in CODED_LABELS
        due = tuple(drugs.index(d) for d, effect in text.relations if effect == i)
        statuses = (OWN,) if coded else (INDICATION, RELIEVED)
        targets.append(_target(text.text, m.start, m.end, statuses, due if coded and due else None))
    taken = [(m.start, m.end) for m in text.mentions]
    return targets + _unmarked(text.text, taken)


def marked_targets(marked: MarkedText) -> list[StatusTarget]:
    """Of a text of the teaching corpus: all marks but drugs, by label and flag."""
    drugs = [m for m in marked.marks if m.label == DRUG]
    targets = []
    for m in marked.marks:
        if m.label == DRUG:
            continue
        due = None
        if m.label in CODED_LABELS and m.numbers:
            due = tuple(i for i, d in enumerate(drugs) if set(d.numbers) & set(m.numbers))
        targets.append(_target(marked.text, m.start, m.end, _statuses(m.label, m.flag), due))
    return targets + _unmarked(marked.text, [(m.start, m.end) for m in marked.marks])


def _statuses(label: str, flag: str | None) -> tuple[str, ...]:
    if label == NONE:
        return (NO_EVENT,)
    if label in CODED_LABELS:
        return (OWN,) if flag is None else (NO_EVENT,) if flag == "past" else (flag,)
    return _INDICATIONS.get(flag, (INDICATION, flag or NO_EVENT))


def _unmarked(text: str, taken: Sequence[tuple[int, int]]) -> list[StatusTarget]:
    free = [m for m in named_terms(text) if not any(m.start < e and s < m.end for s, e in taken)]
    return [_target(text, m.start, m.end, NOT_OWN, None) for m in free]


def _target(
    text: str, start: int, end: int, statuses: tuple[str, ...], drugs: tuple[int, ...] | None
) -> StatusTarget:
    a = assertion(text, start, end)
    return StatusTarget(start, end, statuses, (a.negated, a.hypothetical, a.other_experiencer), drugs)
