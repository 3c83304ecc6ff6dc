"""Surface features of a long form in an acronym's place: what spelling, upper case and grammatical number say
about it, which an encoder of lower-case pieces does not see.

Three kinds of evidence: whether the long form makes a word with the letters written directly before or after
the acronym ("TRAN-s"); whether it has upper case where its neighbours have; whether it agrees with them in
number and article. No feature depends on a corpus or a language model: they are the inputs of a linear layer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_WORD = re.compile(r"\w[\w\-]*")
#: Looked for only where a word begins: a long one would need quadratic time.
_LETTERS_BEFORE = re.compile(r"(?<![^\W_])[^\W_]*$")
_LETTERS_AFTER = re.compile(r"[^\W_]*")
_LAST_WORD = re.compile(r"\w*$")
_FIRST_WORD = re.compile(r"^\w*")
_SENTENCE_START = re.compile(r"(?:^|[.:!?])\s*$")
#: Words on each side whose upper case counts.
_NEAR = 6
#: Two words count as the same if they share this many first letters.
_STEM = 6
#: Letters per piece are capped here and scaled by it.
_MAX_LETTERS = 12

_DOTTED = re.compile(r"(?:\w\.)+\w?")

#: The number of word pieces of a text.
CountPieces = Callable[[str], int]


def undotted(short_form: str) -> str:
    """The short form without full stops between single letters: `P.C.P` and `PCP` are one acronym; `AC.1`
    stays as it is.
    """
    return short_form.replace(".", "") if _DOTTED.fullmatch(short_form) else short_form


class Surroundings(NamedTuple):
    """The text around an acronym."""

    before: str
    """letters of the same word directly before it"""
    after: str
    """letters of the same word directly after it"""
    previous: str
    """the previous word, or empty"""
    next: str
    """the next word, or empty"""
    starts: bool
    """whether it starts its sentence"""
    capitals: float
    """share of the near words that begin with upper case"""
    stems: frozenset[str]
    """the first letters of all other words"""
    short_form: str


def surroundings(left: str, right: str, short_form: str) -> Surroundings:
    """Of an acronym between `left` and `right`."""
    before = _matched(_LETTERS_BEFORE, left)
    after = _matched(_LETTERS_AFTER, right)
    words_left = _WORD.findall(left[: len(left) - len(before)])
    words_right = _WORD.findall(right[len(after) :])
    near = [w for w in (*words_left[-_NEAR:], *words_right[:_NEAR]) if w.isalpha()]
    return Surroundings(
        before=before,
        after=after,
        previous=words_left[-1] if words_left else "",
        next=words_right[0] if words_right else "",
        starts=bool(_SENTENCE_START.search(left)),
        capitals=sum(w[0].isupper() for w in near) / len(near) if near else 0.0,
        stems=frozenset(w.lower()[:_STEM] for w in (*words_left, *words_right)),
        short_form=short_form,
    )


def features(around: Surroundings, long_forms: Sequence[str], count_pieces: CountPieces) -> list[list[float]]:
    """(long forms, len(NAMES)): the features of each long form, in the order of NAMES."""
    lower = [form.lower() for form in long_forms]
    rows = []
    for form, low in zip(long_forms, lower, strict=True):
        values = [
            *_wordness(around, form, count_pieces),
            *_case(around, form),
            *_spelling(around.short_form, form),
            *_agreement(around, form),
            *_repetition(around, low, lower),
        ]
        rows.append([float(v) for v in values])
    return rows


_WORDNESS = (
    *("end_pieces", "end_is_piece", "end_letters", "joined_is_piece", "joined_pieces", "joined_letters"),
    *("start_is_piece", "start_joined_is_piece", "start_joined_pieces", "letters_a_piece", "double_space"),
    *("marks", "hyphen_at_end"),
)


def _wordness(around: Surroundings, form: str, count_pieces: CountPieces) -> tuple[float, ...]:
    """Whether the last and the first word of the long form, with the letters directly after and before it,
    are words: a word has few pieces.
    """
    parts = form.split() or [form]
    end = _matched(_LAST_WORD, parts[-1] + around.after).lower()
    start = _matched(_FIRST_WORD, around.before + parts[0]).lower()
    n_end, n_start = (count_pieces(w) if w else 0 for w in (end, start))
    letters = min(len(end) / max(n_end, 1), _MAX_LETTERS) / _MAX_LETTERS
    has_after, has_before = bool(around.after), bool(around.before)
    return (
        n_end,
        n_end == 1,
        letters,
        has_after and n_end == 1,
        n_end if has_after else 0,
        letters if has_after else 0,
        n_start == 1,
        has_before and n_start == 1,
        n_start if has_before else 0,
        len(form) / max(count_pieces(form.lower()), 1) / _MAX_LETTERS,
        "  " in form,
        bool(re.search(r"[^\w\s\-]", form)),
        form.endswith("-"),
    )


_FORM_CASE = ("titled", "first_only", "first_upper", "all_upper")
_PLACE_CASE = ("starts", "capitals", "previous_upper", "next_upper", "next_all_upper", "joined")
_CASE = (*_FORM_CASE, *(f"{form}_{place}" for form in _FORM_CASE for place in _PLACE_CASE))


def _case(around: Surroundings, form: str) -> list[float]:
    """How the long form is capitalised, and the products with how its surroundings are."""
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
    """Whether the long form spells the acronym."""
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
_SINGULAR_BEFORE = frozenset(("a", "an", "this", "each", "every"))
_PLURAL_BEFORE = frozenset(("these", "those", "many", "several", "two", "of", "all", "both"))
_PLURAL_VERBS = frozenset(("are", "were", "have"))
_SINGULAR_VERBS = frozenset(("is", "was", "has"))
_NO_NOUN = frozenset(("in", "of", "and", "for", "to", *_PLURAL_VERBS, *_SINGULAR_VERBS))


def _agreement(around: Surroundings, form: str) -> tuple[float, ...]:
    """Whether the long form agrees with its neighbours in number and article."""
    end = _matched(_LAST_WORD, form + around.after).lower()
    plural = end.endswith("s") and not end.endswith("ss")
    previous, next_word = around.previous.lower(), around.next.lower()
    vowel = 1 if form[:1].lower() in "aeiou" else -1
    return (
        plural,
        bool(around.after) and end.endswith("ss"),
        vowel if previous == "an" else 0,
        -vowel if previous == "a" else 0,
        plural and previous in _SINGULAR_BEFORE,
        plural and previous in _PLURAL_BEFORE,
        plural and next_word in _PLURAL_VERBS,
        plural and next_word in _SINGULAR_VERBS,
        plural and around.next[:1].islower() and next_word not in _NO_NOUN,
    )


_REPETITION = (
    "words_shared",
    "previous_repeated",
    "next_repeated",
    "begins_another",
    "written_twice",
    "family",
)


def _repetition(around: Surroundings, form: str, forms: Sequence[str]) -> tuple[float, ...]:
    """Whether the sentence already has words of the long form, and whether the other long forms resemble it;
    `form` and `forms` are in lower case.
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


#: The features in the order of a row.
NAMES = (*_WORDNESS, *_CASE, *_SPELLING, *_AGREEMENT, *_REPETITION)


def _matched(pattern: re.Pattern[str], text: str) -> str:
    """The first match, or empty."""
    match = pattern.search(text)
    return match.group() if match else ""
