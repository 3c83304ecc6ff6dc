"""Whether an effect happened, where the text answers that beside its name: "nausea: none, rash 0/10, hives:
yes", or in a turn of phrase that decides as an answer does: "instead of nausea", "it's not like it didn't
cause nausea". A tagger may have taken the answer for a part of the effect.
"""

from __future__ import annotations

from functools import lru_cache

from models.rules.notation import patterns
from models.text import has_one, plain

_SAYS = patterns("answers")
#: Characters before an effect and behind it that are read, and behind it for what is said of all effects.
_BEFORE, _BEHIND, _FAR = 60, 60, 240
#: And behind it where an answer begins.
_NEAR = 8
#: One of them is in front of each effect for which a pattern of the kind says something; mostly none is.
_STEMS = {
    "instead": ("instead of", "rather than", "in place of", "in lieu of", "far from", "anything but", "neg"),
    "doubled": ("not", "never", "nt", "n't", "n\u2019t"),
    "tested": ("test", "screen", "culture", "swab", "serology", "work", "checked"),
}


def answer(text: str, start: int, end: int) -> bool | None:
    """Whether the effect at `start:end` happened; None where no answer is beside it."""
    for found in (_beside, _marked, _told):
        if (happened := found(text, start, end)) is not None:
            return happened
    return None


def _told(text: str, start: int, end: int) -> bool | None:
    """Whether the effect happened, by a turn of phrase; None where there is none."""
    before, behind = text[max(0, start - _BEFORE) : start], text[end : end + _BEHIND]
    near = plain(before)
    is_tested = has_one(near, _STEMS["tested"]) and _SAYS["tested"].search(before) is not None
    is_excluded = _SAYS["excluded"].match(behind) and not _SAYS["cause"].search(before)
    is_instead = has_one(near, _STEMS["instead"]) and _SAYS["instead"].search(before)
    if is_instead or is_excluded or (is_tested and _SAYS["negative"].search(behind)):
        return False
    is_doubled = has_one(near, _STEMS["doubled"]) and _SAYS["doubled"].search(before)
    happened = is_doubled or (is_tested and _SAYS["positive"].search(behind))
    return True if happened else None


def may_affirm(sentence: str) -> bool:
    """Whether an effect of the sentence may be affirmed by an answer: a quick look."""
    return _SAYS["may"].search(sentence) is not None


def may_be_denied(text: str, start: int, end: int) -> bool:
    """Whether a word for what a patient denies is near in front of the effect, or the first of it."""
    return _SAYS["denied"].search(text, max(0, start - _FAR), end) is not None


def all_denied(text: str, end: int) -> bool:
    """Whether the text behind `end` says that nothing happened of what somebody warned of."""
    return _is_denial(text) and _SAYS["of_all"].search(text, end, min(len(text), end + _FAR)) is not None


@lru_cache(maxsize=64)
def _is_denial(text: str) -> bool:
    """Whether anything in the text says that. Cached, because each effect of the text asks."""
    return _SAYS["of_all"].search(text) is not None


def _beside(text: str, start: int, end: int) -> bool | None:
    """The answer that is behind the effect, or that the last words of it are."""
    near, length = text[start : end + _BEHIND], end - start
    first = max(1, near.rfind(" ", 1, length) - 2)
    if _SAYS["near"].search(near, first, length + _NEAR):
        for kind, happened in (("no", False), ("yes", True)):
            last_words = _SAYS[kind].finditer(near, first, length + 1)
            if _SAYS[kind].match(near, length) or any(m.end() >= length for m in last_words):
                return happened
    return None


def _marked(text: str, start: int, end: int) -> bool | None:
    """The mark of an effect in a line in which all marks are in front of their effects, or all behind."""
    if text.isascii():
        return None
    before, behind = text[max(0, start - _FAR) : start], text[end : end + _FAR]
    line = before.rpartition("\n")[2] + text[start:end] + behind.partition("\n")[0]
    marks = sorted(m.span() for kind in ("open", "off") for m in _SAYS[kind].finditer(line))
    if not marks:
        return None
    head = _SAYS["part"].split(line[: marks[0][0]])[-1]
    if not _SAYS["letter"].search(head):
        near = text[max(0, start - 3) : start].rstrip("\ufe0f ")[-1:]
    elif not _SAYS["letter"].search(line, marks[-1][1]):
        near = text[end : end + 3].lstrip()[:1]
    else:
        return None
    if _SAYS["off"].match(near):
        return False
    return True if _SAYS["open"].match(near) else None
