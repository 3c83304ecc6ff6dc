"""Which effects of a sentence are what a drug in it is taken for, or were there before it, or are said not to
be due to it, and not what it caused.

"PE, heparin gtt" looks like "thrombocytopenia, heparin" to a tagger that was trained on case reports, which
tell of what drugs cause. What a drug is a known treatment of counts as caused by it only where the words say
so: "paradoxical seizures", "pain after", "triggered by", "allergic to", "made her seizures worse".

These words are the rows of the table `purpose`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

from models.drugs import bundled_lexicon
from models.drugs.uses import bundled_uses
from models.rules.notation import patterns
from models.terminology import term_at_end
from models.types import DRUG, Mention

_SAYS = patterns("purpose")
#: Characters in front of an effect or a drug, or between both, in which such words are looked for.
_BEFORE = 60
#: Characters between a drug and an effect that are read, of several thousand pairs in a text too.
_FAR = 500
#: Most characters from an effect to a drug behind it of which such words say something about the effect.
_NEAR = 30


def taken_for(text: str, drug: Mention, effect: Mention, drugs: Sequence[Mention] = ()) -> bool:
    """Whether `drug` treats `effect`, and the `text` does not say that it caused it. False for a drug without
    a generic name. `drugs`: those of the sentence, in order; one between both is the cause where the other is
    given behind it ("itching after morphine, Benadryl given").
    """
    term = term_at_end(effect.text)
    generic = _generic(drug) if term else None
    if term is None or generic is None or not bundled_uses().treats(generic, term.pt):
        return False
    between = _SAYS["of_another"].sub("", _between(text, drug, effect))
    if _is_remedy(text, drug, effect, drugs):
        return True
    if _says(between, "caused", "caused_alone") or _is_not_borne(text, drug, effect):
        return False
    before = text[max(0, effect.start - _BEFORE) : effect.start]
    if drug.start < effect.start:
        caused = _says(between[-_BEFORE:], "gave", "gave_alone", "led")
        caused = caused or _says_at(text, effect.end, "made_worse")
    else:
        caused = _says(between, "from") or (_says(before, "more") and _says(between, "more_with"))
        caused = caused or (_says(between, "with") and _is_suffered(text, drug, before))
    return not (caused or _says_at(effect.text, 0, "new_inside") or _says(before, "new"))


def each_for_its_own(
    text: str, drugs: Sequence[Mention], effects: Sequence[Mention]
) -> dict[Mention, Mention]:
    """The drug that each effect is treated by, where the words between both say no more than that: "seizures
    on Keppra, GERD (omeprazole), metformin for diabetes".
    """
    own: dict[Mention, Mention] = {}
    for one, other in pairwise(sorted([*drugs, *effects], key=attrgetter("start"))):
        drug, effect = (one, other) if one.label == DRUG else (other, one)
        links = _SAYS["for_effect"] if drug is one else _SAYS["on_drug"]
        is_linked = drug.label == DRUG != effect.label and links.fullmatch(text, one.end, other.start)
        if is_linked and taken_for(text, drug, effect):
            own[effect] = drug
    return own


def was_before(text: str, drug: Mention, effect: Mention) -> bool:
    """Whether the `text` says that an effect was there before the drug behind it, or stays in spite of it."""
    return effect.end <= drug.start and _says(_near(text, effect.end, drug.start), "was_before")


def _is_remedy(text: str, drug: Mention, effect: Mention, drugs: Sequence[Mention]) -> bool:
    """Whether a drug is given behind an effect with another drug, its cause, in between."""
    place = bisect_left(drugs, drug.start, key=attrgetter("start"))
    if not place or not _says_at(text, drug.end, "remedy"):
        return False
    other = drugs[place - 1]
    is_cause = effect.end <= other.start and _generic(other) != _generic(drug)
    return is_cause and _SAYS["after_cause"].fullmatch(text, other.end, drug.start) is not None


def _generic(drug: Mention) -> str | None:
    """The name of the mention, by the bundled lexicon where it has none."""
    return drug.generic or bundled_lexicon().generic(drug.text)


def _is_suffered(text: str, drug: Mention, before: str) -> bool:
    """Whether an effect with a drug is one that the patient had of it, or that it was given up for."""
    return _says(before, "suffered") or _says_at(text, drug.end, "given_up")


def _says(words: str, *kinds: str) -> bool:
    """Whether the words have a trigger of one of the kinds."""
    return any(_SAYS[kind].search(words) for kind in kinds)


def _says_at(text: str, at: int, kind: str) -> bool:
    """Whether a trigger of the kind is right behind that character."""
    return _SAYS[kind].match(text, at) is not None


def _between(text: str, one: Mention, other: Mention) -> str:
    first, second = sorted((one, other), key=attrgetter("start"))
    return _near(text, first.end, second.start)


def _near(text: str, start: int, end: int) -> str:
    """The part of a text, of a long one its end."""
    return text[max(start, end - _FAR) : end]


def _is_not_borne(text: str, drug: Mention, effect: Mention) -> bool:
    """Whether the words on both sides of the drug say that it was too much, too little or not borne, or taken
    for something else than the effect.
    """
    between, is_behind = _between(text, drug, effect), effect.start < drug.start
    start = max(effect.end if is_behind else 0, drug.start - _BEFORE)
    before = text[start : drug.start]
    is_near = len(between) < _NEAR and "who" not in between
    if is_near if is_behind else not _says(between, "taken_for"):
        if _says(before, "not_borne", "stopped") or _says_at(text, drug.end, "too_much"):
            return True
        if _says(before, "when") and _says_at(text, drug.end, "was_stopped"):
            return True
    return is_behind and _says_at(text, drug.end, "for_else") and _says(between, "in_patient")
