"""Drugs of a post that a tagger's lexicon does not have: nicknames, misspellings, classes and regimens, names
that are joined with other words, and combinations with a shortened part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from models.drugs import bundled_lexicon
from models.drugs.classes import Group, bundled_classes
from models.drugs.informal_names import generic_of_nickname
from models.drugs.joined import drugs_joined, generic_as_written
from models.ner.mention_rules import Cover, in_handle
from models.types import DRUG, Mention, Span


def with_named_drugs(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions of a text, drugs with the names that the bundled tables have for them; and the classes,
    the regimens, and the drugs joined with other words that no mention overlaps, with score 1. All in text
    order.
    """
    known = [_known(text, m) if m.label == DRUG and m.generic is None else m for m in _joined(text, mentions)]
    taken = Cover(known)
    named = [
        _of(_found(text, span), group)
        for span, group in bundled_classes().find(text)
        if not taken.overlaps(span) and not in_handle(text, span)
    ]
    taken = Cover([*known, *named])
    named += [
        replace(_found(text, span), generic=generic)
        for span, generic in drugs_joined(text)
        if not taken.overlaps(span)
    ]
    if named:
        known = sorted([*known, *named], key=attrgetter("start", "end", "label"))
    return _members_once(known)


def _known(text: str, drug: Mention) -> Mention:
    if group := bundled_classes().at(text, Span(drug.start, drug.end)) or _inside(text, drug):
        return _of(drug, group)
    name = text[drug.start : drug.end]
    generic = bundled_lexicon().generic(name) or generic_of_nickname(name, text)
    return replace(drug, generic=generic or generic_as_written(name))


def _joined(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions with the drugs that are written in two joined words in the place of their parts:
    "amoxicillin/clav".
    """
    tagged = {Span(m.start, m.end) for m in mentions}
    pairs = [pair for pair in bundled_lexicon().joined(text) if pair[0] not in tagged]
    if not pairs:
        return list(mentions)
    within = Cover([span for span, _ in pairs])
    others = Cover([m for m in mentions if m.label != DRUG or not within.holds(m)])
    pairs = [pair for pair in pairs if not others.overlaps(pair[0])]
    within = Cover([span for span, _ in pairs])
    made = [m for m in mentions if m.label != DRUG or not within.holds(m)]
    made += [replace(_found(text, span), generic=generic) for span, generic in pairs]
    return sorted(made, key=attrgetter("start", "end", "label"))


def _found(text: str, span: Span) -> Mention:
    return Mention(span.start, span.end, text[span.start : span.end], DRUG, 1.0)


def _inside(text: str, drug: Mention) -> Group | None:
    """The first group that is named in a mention ("red devil chemo"), which no lexicon has as a whole."""
    if bundled_lexicon().find(text[drug.start : drug.end]):
        return None
    return next((group for _, group in bundled_classes().find(text, drug.start, drug.end)), None)


def _of(drug: Mention, group: Group) -> Mention:
    return replace(drug, generic=group.name, kind=group.kind, members=group.members)


def _members_once(mentions: Sequence[Mention]) -> list[Mention]:
    """Without the members of what was named before: a text may have thousands of names."""
    seen: set[str | None] = set()
    made = []
    for m in mentions:
        made.append(replace(m, members=()) if m.members and m.generic in seen else m)
        if m.kind is not None:
            seen.add(m.generic)
    return made
