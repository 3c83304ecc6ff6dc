"""Lists of drugs with the effects of each: "penicillin (anaphylaxis), sulfa - hives, itching". Other things
may be in them, and drugs that are not known: "latex (rash)".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from models.types import DRUG, Mention

#: From a drug to its first effect, and from there to the next.
_HAS = re.compile(r"\s*(?:[(\[:\u2013\u2014]|-{1,2}>?|\u2192)\s*")
_AND = re.compile(r"\s*(?:,|/|&|\+|\band\b|,\s*and\b)\s*")
#: Where an item of a list begins, and from there up to its effect, where its name is no mention. What
#: describes the drug in front is no name: "penicillin, reaction: hives".
_ITEM = r"(?:^|[,;:.\n)])\s*"
#: Between such a name and an effect in one mention.
_JOINED = re.compile(r"\w\s*(?:\s-{1,2}>?\s|[:\u2013\u2014\u2192(])")
_ITEM_START = re.compile(rf"{_ITEM}$")
_OTHER = re.compile(
    rf"{_ITEM}(?!(?:reaction|allerg|intol|sever|mild|moderate|symptom|effect|caus|unknown|child|histor|adverse"
    r"|sensitiv|probab|possib|document|report|confirm|remote|lead|led)|(?:type|which|with|and|then|later|also"
    r"|when|in|on|at|as|has|had|gave|gives|h/o|hx)\b)"
    r"[^\W\d][\w'/-]*(?:[^\S\n][\w'/-]+){0,3}?\s*(?:[(\[:\u2013\u2014]|(?<=\s)-{1,2}>?|\u2192)\s*$",
    re.IGNORECASE,
)
#: In front of the first drug of a list of what was not borne, and what must not stand there.
_BAD = r"\b(?:(?:allerg|intol|adverse|reaction|side\s+effect|sensitiv|not\s+tolerat)\w*|adrs?\b|all(?=\s*:))"
_REACTIONS = re.compile(_BAD, re.IGNORECASE)
#: The heading of a section of such lists, whose items may be sentences or lines.
_SECTION = re.compile(
    rf"(?:^|[.;\n])[^\S\n]*(?:[\w/-]+[^\S\n]+){{0,3}}{_BAD}[^.;:\n]{{0,30}}(?::|\n|\s-{{1,2}}\s)",
    re.IGNORECASE,
)
#: The heading of another section, and an empty line: the section ends there.
_OTHER_SECTION = re.compile(
    r"(?:^|[.;\n])[^\S\n]*(?:[\w/&'-]+[^\S\n]+){0,3}?(?:(?:med|diagnos|problem|immuni[sz]|procedure|consult|order"
    r"|exam|vital|lab|indication)\w*|rx|meds?|pmhx?|psh|hpi|cc|complaint|history|hx|hosp\w*|course|social|family"
    r"|[fs]hx?|pe|vs|imaging|ros|review|subjective|objective|assessment|impression|plan|a/p|a&p|dx|code|reason"
    r"|drips?|gtts?|prn|disposition|condition|follow|home|current|past)\b[^.;:\n]{0,30}(?::|\s*\n)|\n\s*\n",
    re.IGNORECASE,
)
#: One item, or several with commas between them: a name of at most four words, and what stands behind it.
_ITEMS = re.compile(
    r"(?:[^\w,]{0,40}+(?:[\w/'+&-]++[^\S\n]*+){0,4}(?:(?:[(\[:\u2013\u2014\u2192]|-{1,2}>?\s)[^,]*+)?[)\]\s]*+(?:,|$))+"
)
_NONE = re.compile(r"\b(?:no|not\s+known|none|nkda|without|den(?:y|ies|ied))\b", re.IGNORECASE)
_LINE_END = re.compile(r"[.;\n]")
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
            is_next = previous is not None and _AND.fullmatch(text, previous.end, mention.start) is not None
            is_first = previous is drug is not None and _HAS.fullmatch(text, drug.end, mention.start)
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
    if _ITEM_START.search(text, max(0, effect.start - _BEFORE), effect.start) and _JOINED.search(effect.text):
        return True
    start = max(previous.end, effect.start - _FAR) if previous else max(0, effect.start - _BEFORE)
    return _OTHER.search(text, start, effect.start) is not None


def _is_name(text: str, previous: Mention, effect: Mention) -> bool:
    """Whether a mention in front of an effect is an item of the list, that was taken for another effect."""
    begins = _ITEM_START.search(text, max(0, previous.start - _BEFORE), previous.start)
    return bool(previous.label != DRUG and begins and _HAS.fullmatch(text, previous.end, effect.start))


def _end_of_reactions(text: str, drugs: Sequence[Mention]) -> int | None:
    """Where the words in front of the first drug end that call the effects reactions, if there are some: in
    its sentence, or as the heading of its section.
    """
    first = min((drug.start for drug in drugs), default=0)
    before = _LINE_END.split(text[max(0, first - _BEFORE) : first])[-1]
    found = _REACTIONS.search(before)
    if found is not None:
        return None if _NONE.search(before) else first - len(before) + found.end()
    heading = max(_SECTION.finditer(text, max(0, first - _FAR), first), key=re.Match.end, default=None)
    if heading is None or _NONE.search(text, heading.start(), first):
        return None
    within = text[heading.end() : first].lstrip()
    is_list = all(_ITEMS.fullmatch(part) for part in _LINE_END.split(within))
    return heading.end() if is_list and not _OTHER_SECTION.search(within) else None
