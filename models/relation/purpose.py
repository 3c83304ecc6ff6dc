"""Which effects of a sentence are what a drug in it is taken for, or were there before it, and not what it
caused.

"PE, heparin gtt" looks like "thrombocytopenia, heparin" to a tagger that was trained on case reports, which
tell of what drugs cause. What a drug is a known treatment of counts as caused by it only where the words say
so: "paradoxical seizures", "pain after", "triggered by".
"""

from __future__ import annotations

import re

from models.drugs.uses import bundled_uses
from models.terminology.names import term_at_end
from models.types import Mention


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


#: Between a drug and an effect, whichever comes first.
_CAUSED = _words(
    r"""\b (?:induc|associat|relat|caus|trigger|provok|precipitat|produc|attribut|aggravat|exacerbat
        |worsen|complicat|develop|withdraw|manifest|includ)\w*
      | \b (?:due|secondary) \s to \b | \b (?:after|following|during|under|by|becomes?|became) \b
      | \b (?:signs?\s of|presented\s with) \b
      | \b (?:side|adverse) \s (?:effects?|reactions?|events?) \b
      | ^ \s* to \s* (?:oral\s|inhaled\s|topical\s|intravenous\s)? \s* $"""
)
#: In front of an effect, or its first words.
_NEW = _words(
    r"""\b (?:paradox\w* | rebound | (?:develop|emerg|provo[ck]|worsen|exacerbat|aggravat)\w* (?:\s of)?
      | onset (?:\s of)? | de \s novo | new) \s+ (?:[\w-]+\s+){0,2} $"""
)
_WORSE = _words(r"^ \W* (?:paradox|rebound|worsen|exacerbat|aggravat)\w* \b")
#: Between an effect and a drug behind it: "rash before cephalexin", but "rash before the second dose of it".
_EARLIER = _words(
    r"""\b (?:(?:pre|ante)dat(?:ed|es?|ing) | preced(?:ed|es?|ing) (?!\s by) | before | prior \s to | despite
        | in \s spite \s of) \b
      (?! \s (?:[\w-]+\s){0,2}? (?:second|third|fourth|next|last|final|end|stop\w*|discontinu\w*|withdraw\w*
        |complet\w*|cessation|reduc\w*|lower\w*|decreas\w*) \b)"""
)
#: Characters in front of an effect in which such words are looked for.
_BEFORE = 60


def taken_for(text: str, drug: Mention, effect: Mention, read: str) -> bool:
    """Whether `drug` treats `effect`, named `read`, and the `text` does not say that it caused it. False for
    a drug without a generic name.
    """
    term = term_at_end(read) if drug.generic else None
    if drug.generic is None or term is None or not bundled_uses().treats(drug.generic, term.pt):
        return False
    first, second = (drug, effect) if drug.start < effect.start else (effect, drug)
    if _CAUSED.search(text[first.end : second.start]):
        return False
    return not (_WORSE.match(read) or _NEW.search(text[max(0, effect.start - _BEFORE) : effect.start]))


def was_before(text: str, drug: Mention, effect: Mention) -> bool:
    """Whether the `text` says that an effect was there before the drug behind it, or stays in spite of it."""
    return effect.end <= drug.start and _EARLIER.search(text[effect.end : drug.start]) is not None
