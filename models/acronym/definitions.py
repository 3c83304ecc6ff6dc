"""Short forms in a text and the long forms that the text defines for them (Schwartz and Hearst 2003)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from models.drugs import bundled_lexicon
from models.types import Span

#: Clinicians' shorthand in small letters, the first of which may be a capital.
_SHORTHAND_WORDS = (
    "abd abnl abx afeb afib aflutter amio angio appy azithro bcx benzo benzos bicarb bid bilat bili "
    "bp bx c-spine cabg cath chf ckd clinda coags copd ctab cx cxr dapto dbili ddx desat desats dilt "
    "doxy dvt dx ecg ekg eomi epig esrd etoh fhx fluoro fx gerd gtt gtts gyn hct heent hgb htn hx "
    "intraop jvd l-spine lytes meds n/v/d neb nebs nkda norepi npo nt/nd ntnd paeds peds periop perrl "
    "perrla phx plt plts pmh pmhx pna post-op postop ppx pre-op preop prn psh pt pts pulm pyelo q12h "
    "q4h q6h q8h qam qd qds qhs qid qod qpm retics rx rxn sats subcut subq sx sxs sz t-spine tachy "
    "tacro tbili tds tid trach trop trops tx ucx uti vanc vanco vfib vtach w/in wbc wnl wt"
)
#: Those of drugs, which other names follow behind a slash ("vanc/zosyn").
_DRUG_WORDS = "amio azithro benzo clinda dapto dilt doxy norepi tacro vanc vanco"
_SHORTHAND, _DRUGS = (
    "|".join(f"[{word[0].upper()}{word[0]}]{word[1:]}" for word in words.split())
    for words in (_SHORTHAND_WORDS, _DRUG_WORDS)
)
# "5-FU", "IL-2", "C&S" and "s/p" are one short form; "MTX-induced", "anti-TNF" and "PET/CT" contain some.
_SHORT_FORM = re.compile(
    rf"(?<!\w)(?:(?P<shorthand>(?:{_SHORTHAND}|[Ww]/)(?![\w/-])|"
    rf"(?:{_SHORTHAND})(?=-(?:induced|associated|related)\b)|(?:{_DRUGS})(?=/[^\W\d_]{{3}}))|"
    r"(?:[A-Z](?:&[A-Z])+|[A-Za-z](?:/[A-Za-z])+|"
    r"(?:[A-Z0-9][^\W_]{0,9}|[a-z]{1,2}[A-Z][^\W_]{0,7})(?:-[A-Z0-9]{1,4})*)(?!\w))"
)
#: Behind a number "U/L" is a unit, and not "unilateral".
_UNIT = re.compile(r"\d\s?U/L$")
#: Initials of a person: "Dr. AL Smith", unlike "seen by Dr. CT showed".
_TITLE = re.compile(r"(?<!\w)(?:[Dd]r|DR|Mrs?|MRS?|Ms|Miss|Prof|Professor|Doctor)\.?\s+$")
_TITLE_REACH = 12
_SURNAME = re.compile(r"\s+(?:[A-Z]\. ?)?(?:Mc|Mac|O['\u2019])?[A-Z][a-z]{1,30}(?![\w/])")
#: What is no short form in front of these words: "ST elevation" is of the part of an ECG, and "TEN tablets"
#: is a number.
_IN_FRONT = {
    "ST": re.compile(
        r"(?:[ /-]T\b|[ -](?:and T|segments?|elevations?|depressions?|deviations?|changes?|waves?|junction|"
        r"abnormalit(?:y|ies)|resolution|flattening|sagging|coving|elevated|depressed)\b)"
    ),
    "TEN": re.compile(
        r"[ -](?:tablets?|tabs|pills?|capsules?|caps|mg|milligrams?|mcg|ml|units|doses|drops|puffs|times|"
        r"minutes|hours|years old)\b"
    ),
}
#: Between a name and its value.
_TO_VALUE = (
    r"(?:\s+(?:of|is|was|in|the|at|low|mid|high|dropp(?:ed|ing)|fell|down|up|to|now)\b){0,6}\s*[:=<>~]*\s*"
)
#: Long forms that what follows decides, whatever else is near: values, parts of an examination, a drug.
_BY_NEXT = tuple(
    (names.split(), re.compile(follows, re.IGNORECASE), long_form)
    for names, follows, long_form in (
        ("RR", rf"{_TO_VALUE}\d{{1,2}}s?(?![\w%]|[.,/]\d|\s*\(9)", "respiratory rate"),
        ("HR", rf"{_TO_VALUE}\d{{2,3}}(?:s|bpm)?(?![\w%]|[.,/]\d)", "heart rate"),
        ("SBP", rf"{_TO_VALUE}\d{{2,3}}s?(?![\w%])", "systolic blood pressure"),
        ("CK", rf"{_TO_VALUE}(?:\d{{3,}}|\d{{1,3}},\d{{3}})(?!\w)", "creatine kinase"),
        ("MS", r"\s+(?:changes?|wax(?:ing|es|ed))\b", "mental status"),
        (
            "PE",
            r"\s*:\s*(?:(?:gen|general|vss?|heent|skin|neck|heart|cor|cv|chest|lungs?|abd|abdomen|ext|neuro|nad|bp|temp"
            r"|afebrile|alert|awake|well|comfortable|unremarkable|normal|wnl|nl|benign|rrr|ctab?|soft)\b)",
            "physical examination",
        ),
        (
            "d/c D/C DC",
            r"\s+(?P<drug>[\w-]+)(?![\w-])(?!\s+(?:teaching|instructions?|counsel))",
            "discontinue",
        ),
    )
)
_BRACKET = re.compile(r"\(([^()]{2,120})\)")
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
        for match in _SHORT_FORM.finditer(text, sentence.start, sentence.end)
        if (match["shorthand"] or "/" in match.group() or _has_form_of_acronym(match.group()))
        and not _UNIT.search(text, max(0, match.start() - 2), match.end())
        and not _is_something_else(text, match.start(), match.end())
    ]


def _is_something_else(text: str, start: int, end: int) -> bool:
    """Whether capitals are the initials of a person behind a title, or a word or a name by what follows."""
    behind = _IN_FRONT.get(text[start:end])
    if behind is not None and behind.match(text, end):
        return True
    is_titled = _TITLE.search(text, max(0, start - _TITLE_REACH), start) is not None
    return is_titled and _SURNAME.match(text, end) is not None


def long_form_by_next(text: str, span: Span, entry: str, known: Sequence[str]) -> str | None:
    """Which of the `known` long forms of a short form what follows decides; None where it decides nothing."""
    for names, follows, long_form in _BY_NEXT:
        found = follows.match(text, span.end) if entry in names and long_form in known else None
        if found and ("drug" not in found.groupdict() or bundled_lexicon().generic(found["drug"])):
            return long_form
    return None


def definitions(text: str, known: Mapping[str, Sequence[str]] = MappingProxyType({})) -> dict[str, str]:
    """The long form of each short form that the text defines, as `long form (SF)` or `SF (long form)`; where
    a short form is defined twice, the first definition counts.

    `known`: short forms with their long forms. A single word in brackets behind one of these is a definition
    only if it is one of them: "CT (chest)" is none, although "chest" has a C and a T. So are words in front
    of one of _HOW_TAKEN in brackets that do not begin with its letters.
    """
    defined: dict[str, str] = {}
    for bracket in _BRACKET.finditer(text):
        before = text[max(0, bracket.start() - _BEFORE) : bracket.start()].rstrip()
        inside = " ".join(re.split(r"[;,]", bracket.group(1).strip())[0].split())
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
    initials = "".join(word[0] for word in re.split(r"[\s-]+", before.lower()) if word)
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
