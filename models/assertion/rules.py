"""Whether an effect in the text is denied, only feared or possible, or someone else's: rules, no model.

After NegEx (Chapman et al. 2001) and ConText (Harkema et al. 2009), with patients' words for clinicians': a
trigger reaches the effects after it (or before it) up to a terminator, a number of words or the end of the
sentence, and longer phrases that only look like triggers are taken out first. An effect that has passed ("no
longer dizzy") did happen and is not negated. The triggers are rows of assertion.tsv; where two begin at the
same word, the one that stands earlier in the file is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from models.tables import read_tsv
from models.text import sentences
from models.types import Assertion

#: Characters looked at on each side of the effect; no trigger reaches farther.
_WINDOW = 300
#: How many words may stand between a trigger and the effect after it; other kinds do not reach forward.
_REACH = {"negated": 8, "not_so": 6, "possible": 14, "feared": 10, "other": 25}
#: The same for effects before the trigger.
_REACH_BACK = {"negated_after": 2, "possible_after": 2, "other_after": 6, "cancel": 5}
_EVENT = frozenset({"negated", "not_so", "possible", "feared"})
#: Which triggers a terminator ends; what somebody else has ends only where the writer comes in.
_ENDS = {
    "stop": _EVENT,
    "and_self": _EVENT | {"other"},
    "self": frozenset({"other"}),
    "comma": frozenset({"not_so", "feared"}),
    "hard": frozenset({"negated", "not_so", "feared"}),
}
_ENDS_BACK = frozenset({"stop", "and_self", "comma"})
_LIST = re.compile(r"\{\w+\}")


class _Mark(NamedTuple):
    """A trigger or terminator in the sentence."""

    kind: str
    start: int
    end: int


def assertion(text: str, start: int, end: int) -> Assertion:
    """What its sentence says about the effect at `start:end`; all False where there is nothing to read."""
    sentence, first, last = _sentence(text, start, end)
    if not sentence:
        return Assertion()
    marks = list(_marks(sentence))
    found = _forward(sentence, [m for m in reversed(marks) if m.end <= first], first)
    # A tagger may take in who it was: "hubby snores"; "snapping at my kids" does not begin with them.
    found |= {m.kind for m in marks if m.start == first and m.end < last and m.kind == "other"}
    found |= _backward(sentence, [m for m in marks if m.start >= last], last)
    denied = "cancel" not in found and not found.isdisjoint(("negated", "not_so"))
    return Assertion(
        negated=denied or "negated_after" in found,
        hypothetical=not found.isdisjoint(("possible", "possible_after", "feared")),
        other_experiencer=not found.isdisjoint(("other", "other_after")),
    )


def _forward(sentence: str, marks: list[_Mark], first: int) -> set[str]:
    """Kinds of trigger before the effect that reach it; `marks` come nearest first."""
    found, ended = set(), set[str]()
    for kind, _, end in marks:
        if kind in _ENDS:
            ended |= _ENDS[kind]
        elif kind not in ended and sentence.count(" ", end, first) <= _REACH.get(kind, -1):
            found.add(kind)
    return found


def _backward(sentence: str, marks: list[_Mark], last: int) -> set[str]:
    """Kinds of trigger after the effect that reach back to it; `marks` come nearest first."""
    found = set()
    for kind, start, _ in marks:
        if kind in _ENDS_BACK:
            break
        if sentence.count(" ", last, start) <= _REACH_BACK.get(kind, -1):
            found.add(kind)
    return found


def _sentence(text: str, start: int, end: int) -> tuple[str, int, int]:
    """The sentences that hold the span, in lower case, and its place there; "" where there is none."""
    if not 0 <= start < end <= len(text):
        return "", 0, 0
    low, high = max(0, start - _WINDOW), min(len(text), end + _WINDOW)
    before, after = text[low:start], text[end:high]
    # The window may cut a word, and half a word may look like a trigger.
    if low and not (text[low - 1].isspace() or before[:1].isspace()):
        before = "".join(before.split(None, 1)[1:])
    if high < len(text) and not (text[high].isspace() or after[-1:].isspace()):
        after = "".join(after.rsplit(None, 1)[:-1])
    first, last = len(before), len(before) + end - start
    piece = before + text[start:end] + after
    own = [s for s in sentences(piece) if s.start < last and s.end > first]
    if not own:
        return "", 0, 0
    whole = piece[own[0].start : own[-1].end].replace("\u2019", "'")
    lower = whole.lower()
    return lower if len(lower) == len(whole) else whole, first - own[0].start, last - own[0].start


def _marks(sentence: str) -> Iterator[_Mark]:
    """Leftmost marks without overlap; only the phrases that begin with a word's first letter are tried."""
    at = 0
    for beginning in _BEGINNING.finditer(sentence):
        start = beginning.start()
        if start < at:
            continue
        for kind, phrases in _PHRASES.get(sentence[start], ()):
            if match := phrases.match(sentence, start):
                at = match.end()
                yield _Mark(kind, start, at)
                break


def _phrases() -> dict[str, tuple[tuple[str, re.Pattern[str]], ...]]:
    """First character to kinds and their phrases, in the order of the file.

    Rows whose kind is in braces are members of a list, which phrases name in the same way.
    """
    lists: dict[str, list[str]] = {}
    by_first: dict[str, list[tuple[str, str]]] = {}
    for kind, phrase, *_ in read_tsv(Path(__file__).with_name("triggers.tsv"), ("kind", "phrase")):
        if kind.startswith("{"):
            lists.setdefault(kind, []).append(phrase)
            continue
        leading = _LIST.match(phrase)
        heads = lists[leading.group()] if leading else [""]
        rest = phrase[leading.end() :] if leading else phrase
        for head in heads:
            whole = _LIST.sub(lambda m: f"(?:{'|'.join(lists[m.group()])})", head + rest)
            by_first.setdefault(whole.removeprefix("\\")[0], []).append((kind, whole))
    return {first: _compiled(pairs) for first, pairs in by_first.items()}


def _compiled(pairs: list[tuple[str, str]]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    compiled = []
    end = r"(?!'?\w)" if pairs[0][1][0].isalnum() else ""
    for kind, own in groupby(pairs, key=lambda pair: pair[0]):
        pattern = "|".join(re.sub(" (?![?])", r"\\s+", phrase) for _, phrase in own)
        compiled.append((kind, re.compile(rf"(?:{pattern}){end}")))
    return tuple(compiled)


_PHRASES = _phrases()
_BEGINNING = re.compile(r"(?<![\w'])\w|[,;:()\u2013\u2014\u2026]|\.\.|-(?=free\b)|(?<=\s)-+(?=\s)")
