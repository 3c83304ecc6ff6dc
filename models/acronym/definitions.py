"""Short forms in a text and the long forms that the text defines for them (Schwartz and Hearst 2003)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from models.drugs import bundled_lexicon
from models.rules.notation import patterns
from models.types import Span

_SAYS = patterns("short_forms")
_TITLE_REACH = 12
#: Capitals that are no short form in front of some words: the ST segment of an ECG, a number.
_IN_FRONT = {"ST": "st", "TEN": "ten"}
#: Long forms that what follows decides, whatever else is near: values, parts of an examination, a drug.
_BY_NEXT = {
    "RR": ("rr", "respiratory rate"),
    "HR": ("hr", "heart rate"),
    "SBP": ("sbp", "systolic blood pressure"),
    "CK": ("ck", "creatine kinase"),
    "MS": ("ms", "mental status"),
    "PE": ("pe", "physical examination"),
    **dict.fromkeys(("d/c", "D/C", "DC"), ("dc", "discontinue")),
}
_MIN_LENGTH, _MAX_LENGTH = 2, 10
_MAX_WORDS = 2
#: Stand in brackets behind a drug whose letters may be the same: "prednisone (PO)", "Haldol 5 mg (IM)".
_HOW_TAKEN = frozenset(
    ("PO", "PR", "PRN", "IV", "IM", "SC", "SQ", "SL", "HS", "SR", "ER", "CR", "IR", "DR", "XR")
)
#: No long form begins with one of these words, although its initials may fit.
_NO_FIRST = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the", "to")
)
#: Characters in front of a bracket that are searched for a long form: a long word, as a text without white
#: space is one, would need quadratic time.
_BEFORE = 300


def short_forms(text: str, sentence: Span) -> list[Span]:
    """The spans of a sentence of `text` that look like short forms, in text order."""
    return [
        Span(*match.span())
        for match in _SAYS["short_form"].finditer(text, sentence.start, sentence.end)
        if (match["shorthand"] or "/" in match.group() or _has_form_of_acronym(match.group()))
        and not _SAYS["unit"].search(text, max(0, match.start() - 2), match.end())
        and not _is_something_else(text, match.start(), match.end())
    ]


def _is_something_else(text: str, start: int, end: int) -> bool:
    """Whether capitals are the initials of a person behind a title, or a word or a name by what follows."""
    behind = _IN_FRONT.get(text[start:end])
    if behind is not None and _SAYS[behind].match(text, end):
        return True
    is_titled = _SAYS["title"].search(text, max(0, start - _TITLE_REACH), start) is not None
    return is_titled and _SAYS["surname"].match(text, end) is not None


def long_form_by_next(text: str, span: Span, entry: str, known: Sequence[str]) -> str | None:
    """Which of the `known` long forms of a short form what follows decides; None where it decides nothing."""
    kind, long_form = _BY_NEXT.get(entry, ("", ""))
    found = _SAYS[kind].match(text, span.end) if long_form in known else None
    is_it = found and ("drug" not in found.groupdict() or bundled_lexicon().generic(found["drug"]))
    return long_form if is_it else None


def definitions(text: str, known: Mapping[str, Sequence[str]] = MappingProxyType({})) -> dict[str, str]:
    """The long form of each short form that the text defines, as `long form (SF)` or `SF (long form)`; where
    a short form is defined twice, the first definition counts.

    `known`: short forms with their long forms. A single word in brackets behind one of these is a definition
    only if it is one of them: "CT (chest)" is none, although "chest" has a C and a T. So are words in front
    of one of _HOW_TAKEN in brackets that do not begin with its letters.
    """
    defined: dict[str, str] = {}
    for bracket in _SAYS["bracket"].finditer(text):
        before = text[max(0, bracket.start() - _BEFORE) : bracket.start()].rstrip()
        inside = " ".join(bracket.group(1).strip().replace(";", ",").partition(",")[0].split())
        if _is_short_form(inside):
            short_form = inside
            long_form = best_long_form(short_form, _last_words(before, _max_words(short_form)))
            is_remark = short_form in _HOW_TAKEN and _is_remark(short_form, long_form or "")
        else:
            short_form = _last_words(before, 1)
            long_form = best_long_form(short_form, inside) if _is_short_form(short_form) else None
            is_remark = " " not in (long_form or "")
        if long_form is not None and is_remark and not _may_mean(short_form, long_form, known):
            continue
        if long_form is not None:
            defined.setdefault(short_form, long_form)
    return defined


def best_long_form(short_form: str, text: str) -> str | None:
    """The shortest end of `text` that contains the letters and digits of the short form in order, the first
    of them at the start of a word; None where there is none or it is too long or too short.

    Schwartz and Hearst (2003), figure 1: the characters are matched from right to left. Unlike there, a
    longer end is taken whose words begin with these characters: AA is "aplastic anemia", not "anemia".
    """
    at = len(text)
    for i in range(len(short_form) - 1, -1, -1):
        character = short_form[i].lower()
        if not character.isalnum():
            continue
        at -= 1
        while at >= 0 and (text[at].lower() != character or (i == 0 and at > 0 and text[at - 1].isalnum())):
            at -= 1
        if at < 0:
            return None
    start = text.rfind(" ", 0, at + 1) + 1
    long_form = text[start:].strip()
    long_form = max(long_form, _by_initials(short_form, text), key=len)
    too_long = len(long_form.split()) > _max_words(short_form)
    if len(long_form) <= len(short_form) or too_long or short_form in long_form.split():
        return None
    return long_form


def _is_remark(short_form: str, before: str) -> bool:
    """Whether a short form says how what is named `before` it is taken."""
    initials = "".join(word[0] for word in before.lower().replace("-", " ").split())
    return initials != short_form.lower() and "/" not in before


def _may_mean(short_form: str, long_form: str, known: Mapping[str, Sequence[str]]) -> bool:
    forms = known.get(short_form)
    return forms is None or long_form.lower() in [form.lower() for form in forms]


def _max_words(short_form: str) -> int:
    """The most words that a long form may have."""
    return min(len(short_form) + 5, 2 * len(short_form))


def _is_short_form(text: str) -> bool:
    return 0 < len(text.split()) <= _MAX_WORDS and text[0].isalnum() and _has_form_of_acronym(text)


def _has_form_of_acronym(text: str) -> bool:
    return _MIN_LENGTH <= len(text) <= _MAX_LENGTH and any(c.isupper() for c in text)


def _by_initials(short_form: str, text: str) -> str:
    """The end of `text` whose words begin with the characters of the short form; else empty."""
    form = _last_words(text, len(short_form))
    words = form.lower().split()
    fits = "".join(word[0] for word in words) == short_form.lower() and words[0] not in _NO_FIRST
    return form if fits and text.rstrip().endswith(form) else ""


def _last_words(text: str, n: int) -> str:
    return " ".join(text.rsplit(maxsplit=n)[-n:])
