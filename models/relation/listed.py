"""Lists of drugs with the effects of each: "penicillin (anaphylaxis), sulfa - hives, itching"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from models.types import DRUG, Mention

#: From a drug to its first effect, and from there to the next.
_HAS = re.compile(r"\s*(?:[(\[:\u2013\u2014]|-{1,2}>?|\u2192)\s*")
_AND = re.compile(r"\s*(?:,|/|&|\+|\band\b|,\s*and\b)\s*")
#: In front of the first drug of a list of what was not borne, and what must not stand there.
_REACTIONS = re.compile(
    r"\b(?:allerg|intol|adverse|reaction|side\s+effect|sensitiv|not\s+tolerat)\w*|\badrs?\b|\ball\s*:",
    re.IGNORECASE,
)
_NONE = re.compile(r"\b(?:no|not\s+known|none|nkda|without|den(?:y|ies|ied))\b", re.IGNORECASE)
_LINE_END = re.compile(r"[.;\n]")
_BEFORE = 60


class Listed(NamedTuple):
    """What a list says."""

    drug_of: dict[Mention, Mention]
    """the drug that an effect belongs to"""
    are_reactions: bool
    """The words in front of the list call its effects allergies or the like."""


def listed(text: str, drugs: Sequence[Mention], effects: Sequence[Mention]) -> Listed:
    """The list in a sentence with these mentions: the effects that are right behind a drug. Empty where only
    one drug has some, unless the sentence is about allergies or the like.
    """
    drug_of: dict[Mention, Mention] = {}
    last: Mention | None = None
    drug: Mention | None = None
    for mention in sorted([*drugs, *effects], key=lambda m: m.start):
        if mention.label == DRUG:
            drug, last = mention, None
        elif drug is not None:
            before, link = (drug, _HAS) if last is None else (last, _AND)
            if link.fullmatch(text, before.end, mention.start):
                drug_of[mention], last = drug, mention
            else:
                drug = None
    are_reactions = _states_reactions(text, drugs)
    is_list = are_reactions or len(set(drug_of.values())) > 1
    return Listed(drug_of if is_list else {}, are_reactions)


def _states_reactions(text: str, drugs: Sequence[Mention]) -> bool:
    first = min((drug.start for drug in drugs), default=0)
    before = _LINE_END.split(text[max(0, first - _BEFORE) : first])[-1]
    return bool(_REACTIONS.search(before)) and not _NONE.search(before)
