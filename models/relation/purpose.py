"""Which effects of a sentence are what a drug in it is taken for, or were there before it, and not what it
caused.

"PE, heparin gtt" looks like "thrombocytopenia, heparin" to a tagger that was trained on case reports, which
tell of what drugs cause. What a drug is a known treatment of counts as caused by it only where the words say
so: "paradoxical seizures", "pain after", "triggered by", "allergic to", "made her seizures worse".
"""

from __future__ import annotations

import re
from operator import attrgetter

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
      | \b worse \s (?:on|with|since|from|when|while) \b
      | \b (?:side|adverse) \s (?:effects?|reactions?|events?) \b
      | ^ \s* to \s* (?:oral\s|inhaled\s|topical\s|intravenous\s)? \s* $"""
)
_FEW = r"(?:[\w'-]+\s+){0,3}"
#: From an effect up to a drug behind it.
_FROM = _words(
    rf"""^ [\s,]+ (?:[^\s,]+\s+){{0,2}} (?:from|because\s of|thanks\s to|since|2/2|d/t|s/p) \s+ {_FEW} $"""
)
#: From a drug up to an effect behind it.
_GAVE = _words(
    rf"""^ \s* (?:-+>|=+>|\u2192) \W* $ | \b (?: g[ai]ve[sn]? \s+ (?:him|her|me|them|(?:the|this|our) \s \w+)
        | (?:stopp|discontinu|ceas|held|switch|d/c)[\w/']* \s+ {_FEW} (?:because\s of|due\s to|for|since|as)
      ) \s+ {_FEW} $
      | \b (?:(?:led|leads?|leading|rise) \s to | result(?:s|ed|ing)? \s in) \s
        (?! (?s:.*) (?:improv|appear|cessat|recover|reduc|decreas|regress|resol|reliev|relief|cure|control
          |prevent|treat|normal|poor|variat)) (?s:.*) $"""
)
#: Up to a drug that the patient does not bear, has had too much of, or has no longer.
_NOT_BORNE = _words(
    rf"""\b (?: (?:allerg|intoleran|hypersensitiv|reacti|reacted|overdos|intoxicat|poison)\w*
          (?: \s (?:to|of|with|from|on|by) \s | [:(] ) \s* {_FEW}
        | (?:stopp(?:ed|ing)|discontinu\w+|cessation|miss(?:ed|ing)|ran\s out|quit\w*|hold|held|d/c(?:'?e?d)?)
          \s+ (?: (?:of|off|taking|using|with|her|his|my|their|the|a|few|some|two|doses?) \s+ ){{0,4}} ) $"""
)
#: From a drug on.
_TOO_MUCH = _words(
    r"[\s-]+ (?:overdos\w*|toxicity|intoxication|poisoning|withdrawals?|allergy|intolerance) \b"
)
#: From such a drug up to what was there before: "allergic to prednisone for asthma".
_THERE = _words(
    rf"""\b (?: for | of | despite | treat\w* | prescrib\w* | or | simulating
        | (?:patients?|child|children|infants?|(?:wo)?m[ae]n|boys?|girls?) \s with
      ) \s+ {_FEW} $"""
)
#: Around a drug whose end was that of the effect.
_WHEN = _words(rf"\b (?:when|once) \s+ {_FEW} $")
_STOPPED = _words(
    r"\s+ (?:was|were|has\sbeen|had\sbeen) \s+ (?:\w+\s+)? (?:stopped|discontinued|withdrawn|held|ceased)\b"
)
#: From a drug on: what else it is taken for, and not for how long. Between an effect and such a drug.
_FOR_ELSE = _words(
    r"""(?:\s+ (?!and\b|but\b)\w+){0,2} \s+ for \s+
      (?!the\b|an?\b|about\b|\d|one\b|two\b|\w+\s(?:days|weeks|months|years))"""
)
_IN_PATIENT = _words(
    r"^ \s+ (?:in|of) \s+ (?s:.*) \b (?:patients?|(?:wo)?m[ae]n|girls?|boys?|child|infant|adult)\b"
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
#: Up to an effect, from there to a drug, and from an effect behind a drug on: there is more of it.
_MORE = _words(r"\b (?:increas\w*|more|worse) \s+ (?:[\w-]+\s+)? $")
_WITH = _words(r"^ \s+ (?:\w+\s+)? (?:on|with|while|upon) \s+ ")
_MADE_WORSE = _words(
    r"\s+ (?:(?:much|even|got|were|was|far)\s+){0,2} (?:worse|more\s(?:frequent|severe|often)) \b"
)
#: Characters in front of an effect or a drug, or between both, in which such words are looked for.
_BEFORE = 60
#: Most characters from an effect to a drug behind it of which such words say something about the effect.
_NEAR = 30


def taken_for(text: str, drug: Mention, effect: Mention, read: str) -> bool:
    """Whether `drug` treats `effect`, named `read`, and the `text` does not say that it caused it. False for
    a drug without a generic name.
    """
    if drug.generic is None:
        return False
    term = term_at_end(read)
    if term is None or not bundled_uses().treats(drug.generic, term.pt):
        return False
    between = _between(text, drug, effect)
    if _CAUSED.search(between) or _is_not_borne(text, drug, effect):
        return False
    before = text[max(0, effect.start - _BEFORE) : effect.start]
    if drug.start < effect.start:
        caused = _GAVE.search(between[-_BEFORE:]) or _MADE_WORSE.match(text, effect.end)
    else:
        caused = _FROM.search(between) or (_MORE.search(before) and _WITH.search(between))
    return not (caused or _WORSE.match(read) or _NEW.search(before))


def was_before(text: str, drug: Mention, effect: Mention) -> bool:
    """Whether the `text` says that an effect was there before the drug behind it, or stays in spite of it."""
    return effect.end <= drug.start and _EARLIER.search(text[effect.end : drug.start]) is not None


def _between(text: str, one: Mention, other: Mention) -> str:
    first, second = sorted((one, other), key=attrgetter("start"))
    return text[first.end : second.start]


def _is_not_borne(text: str, drug: Mention, effect: Mention) -> bool:
    """Whether the words on both sides of the drug say that it was too much, too little or not borne, or taken
    for something else than the effect.
    """
    between, is_behind = _between(text, drug, effect), effect.start < drug.start
    start = max(effect.end if is_behind else 0, drug.start - _BEFORE)
    before = text[start : drug.start]
    if (len(between) < _NEAR and "who" not in between) if is_behind else not _THERE.search(between):
        if _NOT_BORNE.search(before) or _TOO_MUCH.match(text, drug.end):
            return True
        if _WHEN.search(before) and _STOPPED.match(text, drug.end):
            return True
    return bool(is_behind and _FOR_ELSE.match(text, drug.end) and _IN_PATIENT.match(between))
