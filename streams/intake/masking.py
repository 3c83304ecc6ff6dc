"""Masks what identifies people in a text: mentions of users, URLs, e-mail addresses and phone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from phonenumbers import Leniency, PhoneNumberMatcher

from streams.records import Masked, MaskKind

#: The replacement of each kind in the text. That of users is common in corpora of posts and known to taggers.
STAND_INS: dict[MaskKind, str] = {"user": "@user", "url": "[url]", "email": "[email]", "phone": "[phone]"}
#: A text with more is no report, and where each of them is would not fit into a message.
MAX_MASKED = 1000
_AT = "[@\uff20\ufe6b]"
# Characters without width, which applications put around a handle.
_INVISIBLE = "[\u200b-\u200f\u2060-\u2069]*"
# Top-level domains that no word after a full stop looks like.
_DOMAINS = "com|org|net|edu|gov|info|app|social|xyz|link|online|site|blog|news"
# With a path any other of up to five letters, and these. Longer words are none: "nausea.vomiting/diarrhea".
_DOMAINS_WITH_PATH = (
    "[a-z]{2,5}|agency|center|clinic|community|dental|design|digital|doctor|family|fitness|health|hospital|network"
    "|pharmacy|photography|photos|studio|support|technology|website"
)
# What begins a sentence behind a full stop without a space: "got dizzy.Nausea/vomiting". No domain is so.
_SENTENCE = "(?-i:[A-Z][a-z]{2,}/)"
# What units are given by, "insulin 20 u/day". Of users of Reddit with such a name /u/day is found.
_RATES = "minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|doses?|meals?|shots?|lit(?:er|re)s?|grams?"
# When and where a dose is taken, "2@bedtime", behind an amount or a word; a handle is so behind a space.
_OCCASIONS = (
    "bed(?:time)?|nights?|nite|noon|midnight|mornings?|lunch(?:time)?|dinner(?:time)?|supper|breakfast|[aq]?hs|[ap]m"
    "|once|least"
)
_AT_OCCASION = (
    rf"(?:(?<=\w)|(?<=\d\s)|(?<=mg\s)|(?<=tab\s)|(?<=tabs\s)|(?<=pills\s)){_AT}(?:{_OCCASIONS})"
    r"(?![\w-])(?!(?-i:\.[a-z]))"
)
#: In this order at each place. Where a part repeats, a look behind fixes its first character: without it a
#: long text would need quadratic time.
_PATTERN = re.compile(
    rf"""
    (?P<url>
        (?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://\S+
      | (?<!\w)www\d?\.[^\s.]\S*
      | (?<![\w.@-])(?:[\w-]+\.)+(?:(?:{_DOMAINS})\b(?:[/?:]\S*)?|(?!{_SENTENCE})(?:{_DOMAINS_WITH_PATH})/\S+)
    )
  | (?P<email>
        (?<![\w.+%-])(?!\d[\d.]*[a-z]{{0,5}}{_AT}(?:{_OCCASIONS})\b(?!(?-i:\.[a-z])))
        [\w.+%-]+{_AT}[\w-]+(?:\.[\w-]+)+
    )
  | (?P<user>
        (?!{_AT_OCCASION})(?:(?<!\w){_AT}|{_AT}(?=[^\W\d])){_INVISIBLE}\w+(?:[.-]\w+)*(?:{_AT}\w+(?:[.-]\w+)*)?
      | (?<![\w/])(?:/u/|u/(?!(?:{_RATES})(?![\w-])))[\w-]{{3,}}
      | (?<!\w)did:(?:plc|web):[\w.:%-]+
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
#: What looks like an address where a full stop has no space behind it: "with food.then/now", "nausea.it/was".
#: Where the word behind it is also the domain of a country, the next one must be one that no page is called.
_PROSE = re.compile(
    r"(?<![a-z])[a-z]+\.(?:(?:then|but|and|when|now|still|also|was|were|had|have|got|felt|took|they|that|this|the|not"
    r"|just|after|while|would|could|can|with)/[a-z]+"
    r"|(?:it|is|so|no|in|at|to|be|am|as)/(?:was|is|are|were|has|had|have|this|that|these|those|they|the|it|then"
    r"|now|and|or|not|just|also|does|did|can|could|will|would))[.,;:!?)]*"
)
#: Before the number of a package; "a lot" is no such word.
_OF_PACKAGE = re.compile(
    r"(?:(?<!\ba )(?<!whole )\blots?|\bbatch(?:es)?|\bndc|\bserial)"
    r"\s*+(?:#|no\b\.?|numbers?\b|nr\b\.?)?+\s*+[:=#-]?+\s*+(?:[a-z]{1,3}-?)?\Z",
    re.IGNORECASE,
)
#: Characters before a number in which `_OF_PACKAGE` is looked for.
_BEFORE = 24
#: Characters that occur in everything above.
_MARKS = re.compile("[@\uff20\ufe6b:/.]")
_TRAILING = ".,;:!?)]}>\"'\u2026\u00bb\u201d\u2019*"
#: A text without seven digits close to each other has no phone number. Between them may be any signs, also
#: those without width that applications put there.
_DIGITS = re.compile(r"(?:\d\W{0,3}){7}")
#: Narrow spaces, which French has in numbers, and signs without width: PhoneNumberMatcher ends a number at
#: them, but not at a space.
_SPACES = dict.fromkeys([*range(0x2000, 0x2010), *range(0x202A, 0x2030), *range(0x205F, 0x2070), 0xFEFF], " ")


def mask(text: str, regions: Sequence[str] = ()) -> tuple[str, tuple[Masked, ...]]:
    """The text with its stand-ins, and where they are in it. `regions`: ISO 3166-1 codes of the countries
    whose national phone numbers are found; numbers with a country code always are.
    """
    spans = _merged([*_names(text), *_phones(text, regions)])
    if not spans:
        return text, ()
    pieces: list[str] = []
    masked: list[Masked] = []
    done = length = 0
    for kind, start, end in spans:
        stand_in = STAND_INS[kind]
        pieces += [text[done:start], stand_in]
        length += start - done
        masked.append(Masked(kind, length, length + len(stand_in)))
        length += len(stand_in)
        done = end
    return "".join([*pieces, text[done:]]), tuple(masked)


def _merged(spans: Iterable[tuple[MaskKind, int, int]]) -> list[tuple[MaskKind, int, int]]:
    """The spans in text order. Where a phone number and another span share characters, which only those two
    can, they become one of the other's kind: a number may begin in a URL and end behind it.
    """
    merged: list[tuple[MaskKind, int, int]] = []
    for kind, start, end in sorted(spans, key=lambda f: f[1]):
        if merged and start < merged[-1][2]:
            before, first, last = merged[-1]
            merged[-1] = (kind if before == "phone" else before, first, max(last, end))
        else:
            merged.append((kind, start, end))
    return merged


def unmasked_parts(text: str, masked: Sequence[Masked]) -> str:
    """The text without its stand-ins."""
    parts, done = [], 0
    for m in masked:
        parts.append(text[done : m.start])
        done = m.end
    return "".join([*parts, text[done:]])


def _names(text: str) -> Iterator[tuple[MaskKind, int, int]]:
    if not _MARKS.search(text):
        return
    for match in _PATTERN.finditer(text):
        kind: MaskKind = match.lastgroup  # type: ignore[assignment]
        end = match.end()
        if kind == "url":
            if _PROSE.fullmatch(match.group()):
                continue
            end = match.start() + len(match.group().rstrip(_TRAILING))
        yield kind, match.start(), end


def _phones(text: str, regions: Sequence[str]) -> Iterator[tuple[MaskKind, int, int]]:
    if not _DIGITS.search(text):
        return
    end = 0
    text = text.translate(_SPACES)  # each for one sign, so that the places stay
    spans = {
        (m.start, m.end)
        for region in (regions or ("ZZ",))
        for m in PhoneNumberMatcher(text, region, leniency=Leniency.VALID)
    }
    for start, stop in sorted(spans):
        if start >= end and not _OF_PACKAGE.search(text[max(0, start - _BEFORE) : start]):
            yield "phone", start, stop
            end = stop
