"""What the letters around an acronym say about a long form, beyond what an encoder without upper case reads.

Three kinds of evidence: does the long form grow into a word with the letters that stand right beside the
acronym ("TRAN-s"); does it have upper case where its neighbours have; does it agree with them in number and
article. Nothing here knows a language model or a corpus: a few dozen numbers for a linear layer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_WORD = re.compile(r"\w[\w\-]*")
_LETTERS_BEFORE = re.compile(r"[^\W_]*$")
_LETTERS_AFTER = re.compile(r"[^\W_]*")
_SENTENCE_START = re.compile(r"(?:^|[.:!?])\s*$")
#: Words to each side whose upper case is looked at.
_NEAR = 6
#: Letters by which words of one family are taken as the same.
_STEM = 6

_DOTTED = re.compile(r"(?:\w\.)+\w?")

Pieces = Callable[[str], int]


def undotted(short_form: str) -> str:
    """`P.C.P` and `PCP` are one acronym; `AC.1` stays as it is."""
    return short_form.replace(".", "") if _DOTTED.fullmatch(short_form) else short_form


class Context(NamedTuple):
    """What stands around an acronym."""

    before: str
    """letters of the same word right before it"""
    after: str
    previous: str
    """the word before, and the word after"""
    next: str
    starts: bool
    """nothing of the sentence stands before it"""
    capitals: float
    """share of the words near that begin with upper case"""
    stems: frozenset[str]
    short_form: str


def context(left: str, right: str, short_form: str) -> Context:
    """Of an acronym between `left` and `right`."""
    before = _first(_LETTERS_BEFORE, left)
    after = _LETTERS_AFTER.match(right)
    glued = after.group() if after else ""
    words_left = _WORD.findall(left[: len(left) - len(before)])
    words_right = _WORD.findall(right[len(glued) :])
    near = [w for w in (*words_left[-_NEAR:], *words_right[:_NEAR]) if w.isalpha()]
    return Context(
        before,
        glued,
        words_left[-1] if words_left else "",
        words_right[0] if words_right else "",
        bool(_SENTENCE_START.search(left)),
        sum(w[0].isupper() for w in near) / len(near) if near else 0.0,
        frozenset(w.lower()[:_STEM] for w in (*words_left, *words_right)),
        short_form,
    )


def features(around: Context, long_forms: Sequence[str], pieces: Pieces) -> list[list[float]]:
    """(long forms, len(NAMES)); `pieces` counts the word pieces of a text."""
    lower = [form.lower() for form in long_forms]
    rows = []
    for form, low in zip(long_forms, lower, strict=True):
        values = [
            *_wordness(around, form, pieces),
            *_case(around, form),
            *_spelling(around.short_form, form),
            *_agreement(around, form),
            *_company(around, low, lower),
        ]
        rows.append([float(v) for v in values])
    return rows


_WORDNESS = (
    *("end_pieces", "end_is_piece", "end_letters", "joined_is_piece", "joined_pieces", "joined_letters"),
    *("start_is_piece", "start_joined_is_piece", "start_joined_pieces", "letters_a_piece", "double_space"),
    *("marks", "hyphen_at_end"),
)


def _wordness(around: Context, form: str, pieces: Pieces) -> tuple[float, ...]:
    """Is what the long form ends and begins with a word, together with the letters beside it?"""
    parts = form.split() or [form]
    end = _tail(parts[-1] + around.after).lower()
    start = _head(around.before + parts[0]).lower()
    n_end, n_start = (pieces(w) if w else 0 for w in (end, start))
    letters = min(len(end) / max(n_end, 1), 12) / 12
    joined, begun = bool(around.after), bool(around.before)
    return (
        n_end,
        n_end == 1,
        letters,
        joined and n_end == 1,
        n_end if joined else 0,
        letters if joined else 0,
        n_start == 1,
        begun and n_start == 1,
        n_start if begun else 0,
        len(form) / max(pieces(form.lower()), 1) / 12,
        "  " in form,
        bool(re.search(r"[^\w\s\-]", form)),
        form.endswith("-"),
    )


_FORM_CASE = ("titled", "first_only", "first_upper", "all_upper")
_PLACE_CASE = ("starts", "capitals", "previous_upper", "next_upper", "next_all_upper", "joined")
_CASE = (*_FORM_CASE, *(f"{form}_{place}" for form in _FORM_CASE for place in _PLACE_CASE))


def _case(around: Context, form: str) -> list[float]:
    """How the long form is capitalised, and that times how its place is."""
    parts = form.split()
    upper = [w[0].isupper() for w in parts]
    titled = sum(upper) / max(len(parts), 1)
    own = (titled, len(parts) > 1 and sum(upper) == 1 and upper[0], form[:1].isupper(), form.isupper())
    place = (
        around.starts,
        around.capitals,
        around.previous[:1].isupper(),
        around.next[:1].isupper(),
        around.next.isupper(),
        bool(around.after),
    )
    return [*own, *(f * p for f in own for p in place)]


_SPELLING = ("initials", "initials_begin", "spelled", "same_first", "capitals_spell", "length", "words")


def _spelling(short_form: str, form: str) -> tuple[float, ...]:
    """Does the long form spell the acronym?"""
    short = short_form.lower()
    initials = "".join(w[0] for w in re.findall(r"\w+", form))
    low = initials.lower()
    letters = iter(form.lower())
    return (
        low == short,
        short.startswith(low) or low.startswith(short),
        all(c in letters for c in short if c.isalnum()),
        form[:1].lower() == short[:1],
        initials == short_form,
        math.log1p(len(form)),
        math.log1p(len(form.split())),
    )


_AGREEMENT = (
    *("plural", "plural_twice", "an", "a", "one_of_plural", "many_of_plural", "are_plural", "is_plural"),
    "noun_after_plural",
)
_ONE = frozenset(("a", "an", "this", "each", "every"))
_MANY = frozenset(("these", "those", "many", "several", "two", "of", "all", "both"))
_VERBS_OF_MANY = frozenset(("are", "were", "have"))
_VERBS_OF_ONE = frozenset(("is", "was", "has"))
_NO_NOUN = frozenset(("in", "of", "and", "for", "to", *_VERBS_OF_MANY, *_VERBS_OF_ONE))


def _agreement(around: Context, form: str) -> tuple[float, ...]:
    """Number and article."""
    end = _tail(form + around.after).lower()
    plural = end.endswith("s") and not end.endswith("ss")
    previous, after = around.previous.lower(), around.next.lower()
    vowel = 1 if form[:1].lower() in "aeiou" else -1
    return (
        plural,
        bool(around.after) and end.endswith("ss"),
        vowel if previous == "an" else 0,
        -vowel if previous == "a" else 0,
        plural and previous in _ONE,
        plural and previous in _MANY,
        plural and after in _VERBS_OF_MANY,
        plural and after in _VERBS_OF_ONE,
        plural and around.next[:1].islower() and after not in _NO_NOUN,
    )


_COMPANY = ("words_shared", "previous_repeated", "next_repeated", "begins_another", "written_twice", "family")


def _company(around: Context, form: str, forms: Sequence[str]) -> tuple[float, ...]:
    """Does the sentence hold words of the long form already, and do the other long forms resemble it? All in
    lower case.
    """
    stems = [w[:_STEM] for w in re.findall(r"\w{3,}", form)]
    parts = form.split()
    return (
        sum(s in around.stems for s in stems) / len(stems) if stems else 0.0,
        bool(parts) and around.previous.lower()[:_STEM] == parts[0][:_STEM],
        bool(parts) and around.next.lower()[:_STEM] == parts[-1][:_STEM],
        any(other != form and other.startswith(form) for other in forms),
        forms.count(form) > 1,
        sum(other[:_STEM] == form[:_STEM] for other in forms) - 1,
    )


NAMES = (*_WORDNESS, *_CASE, *_SPELLING, *_AGREEMENT, *_COMPANY)


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group() if found else ""


def _tail(text: str) -> str:
    """The last word of a text, empty where it ends otherwise."""
    return _first(re.compile(r"\w*$"), text)


def _head(text: str) -> str:
    return _first(re.compile(r"^\w*"), text)
