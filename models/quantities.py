"""Numbers as people write them, in digits and in words: the one reader of them, for rules and wordings."""

from __future__ import annotations

import re
from functools import lru_cache
from math import nan
from typing import NamedTuple

_ONES = "one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
#: Number words to their value.
NUMBER_WORDS: dict[str, int] = {
    word: value for value, word in enumerate(f"zero {_ONES} {_TEENS}".split())
} | {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
_SIGNS = {"½": 0.5, "¼": 0.25, "¾": 0.75}
_SPECIAL = {
    "several": nan, "few": nan, "a few": nan, "a couple": 2.0, "a couple of": 2.0, "couple": 2.0,
    "couple of": 2.0, "half": 0.5, "half a": 0.5, "half an": 0.5, "half of a": 0.5, "half of an": 0.5,
    "a half": 0.5, "an half": 0.5, "a": 1.0, "an": 1.0,
}  # fmt: skip
_TEN, _SMALL = _TENS.replace(" ", "|"), _ONES.replace(" ", "|")
_WORD = rf"(?:{_TEN})(?:[ -](?:{_SMALL}))?|{_TEENS.replace(' ', '|')}|{_SMALL}|zero"
_DIGITS = r"\d{1,3}(?:,\d{3})+|\d{1,5}(?:\.\d{1,3})?"
_ARTICLE = r"an?(?=[ -](?:min|hour|day|week|month|year|tab|pill|cap))"
#: One number: "1,500", "2.5", "1/2", "2 1/2", "½", "forty-five", "half an", "a couple of", "an" before a
#: unit; "a few" and "several" are one that is not known.
_NUMBER = (
    rf"(?:\d{{1,2}}[ -])?[1-3]/[234](?![\d/])|\d{{0,2}} ?[½¼¾]|(?:{_DIGITS})(?: and a half)?"
    rf"|(?i:(?:{_WORD})(?: and a half)?|half (?:of )?an?|half|an? half|(?:a )?(?:couple(?: of)?|few)|several"
    rf"|{_ARTICLE})(?![^\W\d_])"
)
#: What a number begins with, since most words are none.
_FIRST = r"(?=[\d½¼¾]| [½¼¾]|(?i:an?\b|co|ei|el|fe|fi|fo|ha|ni|on|se|si|t[ehw]|ze))"
_RANGE = re.compile(
    rf"(?<![\w.,/$£€#:%]){_FIRST}(?<!\d[-\u2013])({_NUMBER})(?:(?: ?[-\u2013] ?| to | or )({_NUMBER}))?"
    r"(?![\w/]*\d)(?!,\d)"
)
_FRACTION = re.compile(r"(?:(\d{1,2})[ -])?([1-3])/([234])")


class Number(NamedTuple):
    """A number, or a range of two, at `start:end` of a text."""

    start: int
    end: int
    low: float
    high: float
    written: str
    """the first number as it is written, in lower case"""

    def plus(self, more: float) -> Number:
        """The number with what its unit is followed by: "a year and a half"."""
        return self._replace(low=self.low + more, high=self.high + more)


def numbers(text: str) -> list[Number]:
    """The numbers in a text from left to right; the larger end of a range stands second, else it is none."""
    found = []
    for match in _RANGE.finditer(text):
        low, end = number(match[1]), match.end()
        high = number(match[2]) if match[2] else low
        if high < low or (match[2] or "").lower() in ("a", "an"):
            high, end = low, match.end(1)
        found.append(Number(match.start(), end, low, high, match[1].lower()))
    return found


@lru_cache(maxsize=1024)
def number(written: str) -> float:
    """The value of a number as `numbers` finds it, or of digits with marks between thousands; NaN of "a few".
    ValueError for other words.
    """
    word = written.lower().strip()
    if word.endswith(" and a half"):
        return number(word.removesuffix(" and a half")) + 0.5
    if fraction := _FRACTION.fullmatch(word):
        return int(fraction[1] or 0) + int(fraction[2]) / int(fraction[3])
    if word[-1:] in _SIGNS:
        return int(word[:-1] or 0) + _SIGNS[word[-1]]
    tens, _, small = word.replace("-", " ").partition(" ")
    if tens in NUMBER_WORDS:
        return float(NUMBER_WORDS[tens] + NUMBER_WORDS.get(small, 0))
    return _SPECIAL[word] if word in _SPECIAL else float(word.replace(",", ""))
