"""Lists of drugs with the effects of each: "penicillin (anaphylaxis), sulfa - hives, itching". Other things
may be in them, and drugs that are not known: "latex (rash)".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.rules.notation import patterns
from models.types import DRUG, Mention

_SAYS = patterns("effect_lists")
#: Characters in front of an effect or a drug that are read.
_BEFORE = 60
#: Characters of such a section that are searched for its heading, and behind a mention for another's name.
_FAR = 600


class Listed(NamedTuple):
    """What a list says."""

    drug_of: dict[Mention, Mention]
    """the drug that an effect belongs to"""
    of_others: set[Mention]
    """what is no effect of any of the drugs"""
    are_reactions: bool
    """The words in front of the list call its effects allergies or the like."""


def listed(text: str, drugs: Sequence[Mention], effects: Sequence[Mention]) -> Listed:
    """The list in a sentence with these mentions: the effects that are right behind a drug. Empty where only
    one drug has some, unless the sentence is about allergies or the like.
    """
    drug_of: dict[Mention, Mention] = {}
    of_others: set[Mention] = set()
    drug = previous = None
    for mention in sorted([*drugs, *effects], key=lambda m: m.start):
        if mention.label == DRUG:
            drug = mention
        else:
            is_next = (
                previous is not None and _SAYS["and"].fullmatch(text, previous.end, mention.start) is not None
            )
            is_first = previous is drug is not None and _SAYS["has"].fullmatch(text, drug.end, mention.start)
            if drug is not None and (is_first or (is_next and previous in drug_of)):
                drug_of[mention] = drug
            else:
                drug = None
                if (is_next and previous in of_others) or _is_of_other(text, previous, mention):
                    of_others.add(mention)
                elif previous is not None and previous not in drug_of and _is_name(text, previous, mention):
                    of_others |= {previous, mention}
        previous = mention
    stated = _end_of_reactions(text, drugs)
    if stated is not None or len(set(drug_of.values())) > 1:
        of_others = {effect for effect in of_others if effect.start >= (stated or 0)}
        return Listed(drug_of, of_others, stated is not None)
    return Listed({}, set(), False)


def _is_of_other(text: str, previous: Mention | None, effect: Mention) -> bool:
    """Whether an effect stands behind the name of what is no known drug, or begins with it."""
    if _SAYS["item_start"].search(text, max(0, effect.start - _BEFORE), effect.start) and _SAYS[
        "joined"
    ].search(effect.text):
        return True
    start = max(previous.end, effect.start - _FAR) if previous else max(0, effect.start - _BEFORE)
    return _SAYS["other"].search(text, start, effect.start) is not None


def _is_name(text: str, previous: Mention, effect: Mention) -> bool:
    """Whether a mention in front of an effect is an item of the list, that was taken for another effect."""
    begins = _SAYS["item_start"].search(text, max(0, previous.start - _BEFORE), previous.start)
    return bool(
        previous.label != DRUG and begins and _SAYS["has"].fullmatch(text, previous.end, effect.start)
    )


def _end_of_reactions(text: str, drugs: Sequence[Mention]) -> int | None:
    """Where the words end in front of the first drug that call the effects reactions, if there are some: in
    its sentence, or as the heading of its section.
    """
    first = min((drug.start for drug in drugs), default=0)
    before = _SAYS["line_end"].split(text[max(0, first - _BEFORE) : first])[-1]
    found = _SAYS["reactions"].search(before)
    if found is not None:
        return None if _SAYS["none"].search(before) else first - len(before) + found.end()
    heading = max(
        _SAYS["section"].finditer(text, max(0, first - _FAR), first), key=lambda m: m.end(), default=None
    )
    if heading is None or _SAYS["none"].search(text, heading.start(), first):
        return None
    within = text[heading.end() : first].lstrip()
    is_list = all(_SAYS["items"].fullmatch(part) for part in _SAYS["line_end"].split(within))
    return heading.end() if is_list and not _SAYS["other_section"].search(within) else None
