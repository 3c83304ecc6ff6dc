"""Assertion status of an effect in a text by rules: negated, hypothetical, or of another experiencer.

After NegEx (Chapman et al. 2001) and ConText (Harkema et al. 2009), with triggers in the language of
patients. A trigger has a scope: the effects after it (or before it) up to a terminator, a number of words or
the end of the sentence. Pseudo-triggers, longer expressions that contain a trigger without its meaning, are
matched first and have no scope. An effect that has ended ("no longer dizzy") did happen and is not negated.

The triggers are the rows of the table `assertion`, whose head describes the kinds.

In a post everybody but the writer is another experiencer (`other`). In a clinical sentence "she" and "a man"
are the patient, and only relatives, donors and animals that have the effect are others (`relative`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from models.assertion.answers import answer
from models.rules.notation import Scanner, read_rules
from models.rules.sentences import sentences, whole_sentences
from models.types import Assertion, Span

#: Characters searched on each side of the effect.
_WINDOW = 300
#: Words that may be between a trigger and an effect after it; other kinds have no scope after them.
_WORDS_AFTER = {
    "negated": 8,
    "negated_until_comma": 6,
    "negated_aside": 8,
    "possible": 14,
    "feared": 10,
    "other": 25,
    "relative": 12,
    "relative_after": 12,
}
#: Words that may be between an effect and a trigger after it.
_WORDS_BEFORE = {
    "negated_after": 2,
    "possible_after": 2,
    "other_after": 6,
    "relative_after": 6,
    "cancel": 5,
    "until": 5,
}
_NEGATED = frozenset({"negated", "negated_until_comma", "negated_aside"})
_EVENT = _NEGATED | {"possible", "feared"}
#: Kinds of rows that are read in posts alone, and in clinical sentences alone.
_IN_POSTS = frozenset({"other", "other_after"})
_RELATIVE = frozenset({"relative", "relative_after"})
_IN_CLINICAL = _RELATIVE | {"patient", "patient_clause", "onset", "negated_aside"}
_CLINICAL_ONLY = "clinical_"
#: Kinds whose scope each terminator ends; that of another experiencer ends only where the writer is named.
_ENDED_BY = {
    "stop": _EVENT,
    "new_clause": _EVENT | {"other"} | _RELATIVE,
    "writer": frozenset({"other"}) | _RELATIVE,
    "patient": _RELATIVE,
    "comma": frozenset({"negated_until_comma", "feared"}),
    "punctuation": _NEGATED | {"feared"},
    "patient_clause": _EVENT | _RELATIVE,
    "onset": frozenset({"negated_aside"}),
    "until": _NEGATED,
}
#: Terminators of scopes before a trigger.
_ENDS_BACK = frozenset({"stop", "new_clause", "comma"})
#: What is written for an apostrophe, and the only letter whose lower case is longer: it would shift offsets.
_PLAIN = str.maketrans("\u2019\u00b4\u02bc\u0130", "'''i")
#: Between two words: columns of a note have several spaces, or tabs.
_SPACE = re.compile(r"\s+")


class _Match(NamedTuple):
    """A trigger, pseudo-trigger or terminator in the sentence."""

    kind: str
    start: int
    end: int


def assertion(text: str, start: int, end: int, *, clinical: bool = False) -> Assertion:
    """The assertion of the effect at `start:end` by its sentence; all False for a span without text.

    `clinical`: the text is about a patient and not by one, see above.
    """
    sentence, first, last = _sentence(text, start, end, clinical)
    if not sentence:
        return Assertion()
    matches = _matches_of(sentence, clinical)
    kinds = _kinds_before(sentence, [m for m in reversed(matches) if m.end <= first], first)
    # A mention may begin with the person who has the effect: "hubby snores", unlike "snapping at my kids". In
    # a clinical sentence it may begin with a negation, "no hepatotoxicity"; in a post such a mention is an
    # effect as it stands, "no appetite".
    inside = {m.kind for m in matches if m.start == first and m.end < last}
    kinds |= inside & {"other", "relative", *(_NEGATED if clinical else ())}
    kinds |= _kinds_after(sentence, [m for m in matches if m.start >= last], last)
    begin = start - first
    said = answer(text[begin : begin + len(sentence)], first, last)
    negated = kinds.isdisjoint(("cancel", "until")) and not kinds.isdisjoint(_NEGATED)
    return Assertion(
        negated=negated or "negated_after" in kinds if said is None else not said,
        hypothetical=said is None and not kinds.isdisjoint(("possible", "possible_after", "feared")),
        other_experiencer=not kinds.isdisjoint(("other", "other_after", "relative", "relative_after")),
    )


def _kinds_before(sentence: str, matches: list[_Match], first: int) -> set[str]:
    """Kinds of the triggers before the effect that have it in their scope; `matches` are nearest first."""
    kinds, ended = set(), set[str]()
    for kind, _, end in matches:
        if kind in _ENDED_BY:
            ended |= _ENDED_BY[kind]
        elif kind not in ended and len(_SPACE.findall(sentence, end, first)) <= _WORDS_AFTER.get(kind, -1):
            kinds.add(kind)
    return kinds


def _kinds_after(sentence: str, matches: list[_Match], last: int) -> set[str]:
    """Kinds of the triggers after the effect that have it in their scope; `matches` are nearest first."""
    kinds = set()
    for kind, start, _ in matches:
        if kind in _ENDS_BACK:
            break
        if len(_SPACE.findall(sentence, last, start)) <= _WORDS_BEFORE.get(kind, -1):
            kinds.add(kind)
    return kinds


def _sentence(text: str, start: int, end: int, clinical: bool) -> tuple[str, int, int]:
    """The sentences that overlap the span in lower case, and its offsets in them; "" where there are none."""
    if not 0 <= start < end <= len(text):
        return "", 0, 0
    spans = _sentences_of(text, clinical)
    first = bisect_right(spans, start, key=attrgetter("end"))
    after = bisect_left(spans, end, key=attrgetter("start"))
    if first == after:
        return "", 0, 0
    begin, stop = spans[first].start, spans[after - 1].end
    # The window may cut a word, a part of which may match a trigger: it is left out.
    low, high = start - _WINDOW, end + _WINDOW
    if begin < low:
        is_cut = not (text[low - 1].isspace() or text[low].isspace())
        begin = start - len(
            "".join(text[low:start].split(None, 1)[1:]) if is_cut else text[low:start].lstrip()
        )
    if stop > high:
        is_cut = not (text[high - 1].isspace() or text[high].isspace())
        stop = end + len("".join(text[end:high].rsplit(None, 1)[:-1]) if is_cut else text[end:high].rstrip())
    return _lower(text, begin, stop), start - begin, end - begin


@lru_cache(maxsize=256)
def _lower(text: str, start: int, end: int) -> str:
    return text[start:end].translate(_PLAIN).lower()


@lru_cache(maxsize=64)
def _sentences_of(text: str, clinical: bool) -> tuple[Span, ...]:
    """Cached, because other effects of the same text need them. The lines of a note may be cut for their
    length, those of a post are sentences.
    """
    return tuple(whole_sentences(text) if clinical else sentences(text))


@lru_cache(maxsize=256)
def _matches_of(sentence: str, clinical: bool) -> tuple[_Match, ...]:
    """Cached, because other effects of the sentence, and the next stage, need them."""
    return tuple(_Match(*place) for place in (_CLINICAL if clinical else _POSTS)(sentence))


def _scanner(*, clinical: bool) -> Scanner:
    """Of the triggers of posts or of clinical sentences."""
    left_out = _IN_POSTS if clinical else _IN_CLINICAL
    rows = [
        (kind.removeprefix(_CLINICAL_ONLY), trigger)
        for kind, trigger in read_rules("assertion")
        if clinical or not kind.startswith(_CLINICAL_ONLY)
    ]
    return Scanner.of([(kind, trigger) for kind, trigger in rows if kind not in left_out], _MARKS)


#: Punctuation with which a trigger may begin.
_MARKS = r"[,;:()\u2013\u2014\u2026]|\.\.|-free\b|(?<=\s)-+\s"
_POSTS, _CLINICAL = _scanner(clinical=False), _scanner(clinical=True)
