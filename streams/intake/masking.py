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
#: In this order at each place. Where a part repeats, a look behind fixes its first character: without it a
#: long text would need quadratic time.
_PATTERN = re.compile(
    rf"""
    (?P<url>
        (?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://\S+
      | (?<!\w)www\d?\.[^\s.]\S*
      | (?<![\w.@-])(?:[\w-]+\.)+(?:(?:{_DOMAINS})\b(?:[/?:]\S*)?|(?!{_SENTENCE})(?:{_DOMAINS_WITH_PATH})/\S+)
    )
  | (?P<email>(?<![\w.+%-])[\w.+%-]+{_AT}[\w-]+(?:\.[\w-]+)+)
  | (?P<user>
        (?:(?<!\w){_AT}|{_AT}(?=[^\W\d])){_INVISIBLE}\w+(?:[.-]\w+)*(?:{_AT}\w+(?:[.-]\w+)*)?
      | (?<![\w/])(?:/u/|u/(?!(?:{_RATES})(?![\w-])))[\w-]{{3,}}
      | (?<!\w)did:(?:plc|web):[\w.:%-]+
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
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
        if start >= end:
            yield "phone", start, stop
            end = stop
