"""What a message is about: the medicines, illnesses and other phrases that may be the focus of its question.

Candidates are names of both lexicons, noun phrases that end like the name of an illness or a procedure, what
stands behind cues such as "diagnosed with", and the subject line. A linear ranker chooses among them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from models.summarization.extraction.message import Message, without_masks
from models.summarization.medical_entities import GENERAL
from models.types import Span

#: The features of a candidate, in the order of `features`.
FEATURES = (
    "drug",
    "term",
    "phrase",
    "cue",
    "subject",
    "sources",
    "mentions",
    "first_place",
    "last_place",
    "one_word",
    "words",
    "letters",
    "cosine",
    "candidates",
    "in_longer",
    "has_shorter",
)
_NAME = re.compile(r"[^\W_][\w'\u2019-]*")
_ENDING = (
    r"(?:syndromes?|diseases?|disorders?|cancers?|infections?|deficienc(?:y|ies)|surgery|failure|attacks?|"
    r"tumou?rs?|cysts?|stones?|fractures?|virus|vaccines?|palsy|dystrophy|sclerosis|anemia|apnea|defects?|"
    r"[a-z]{3,30}(?:itis|osis|emia|aemia|oma|pathy|plasty|ectomy|algia|uria|rrhea|penia|plegia|trophy|plasia|"
    r"lepsy|asthma|philia))"
)
_PHRASE = re.compile(rf"\b(?:[a-z0-9][\w'\u2019-]{{0,30}} ){{0,3}}{_ENDING}\b", re.IGNORECASE)
_CUE = re.compile(
    r"\b(?:diagnosed (?:with|as)|suffer(?:s|ing|ed)? (?:from|with)|information (?:on|about|regarding)|"
    r"cure for|treatments? (?:for|of)|(?:i|he|she|who|son|daughter|mother|father|husband|wife|we) "
    r"(?:have|has|had)(?: (?:got|a|an|been having))?|test(?:ed|ing)? for|about|called)\s+"
    r"((?:[^\W_][\w'\u2019-]* ?){1,5})",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:subject\s{0,3}:)?\s{0,5}([^\s?][^\n?]{2,59}?)\s{0,5}(?:\n|\bmessage\s{0,3}:)", re.IGNORECASE
)
_LONGEST_SUBJECT = 6
#: Of a long text only the first candidates are compared.
_MOST = 50
#: Words that a candidate neither begins nor ends with, and that end a phrase.
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about after also am an and any are as at be because been being but by can caused causes cause "
        "could diagnosed did do does for from get getting got had has have having he her his how i if in "
        "into is it know like me my of on or our please severe she so some suffer suffering suffers than "
        "that the their them there they this to treat us very was we were what when where which who why "
        "will with would you your",
    )
)


@dataclass(slots=True)
class Focus:
    """A candidate: its first mention in the text, and which of the five ways found it."""

    span: Span
    text: str
    sources: set[str] = field(default_factory=set)


def candidates(message: Message) -> list[Focus]:
    """The candidates of a text, each name once, in the order of their first mentions."""
    found: dict[str, Focus] = {}
    for source, span in _spans(message):
        name = message.text[span.start : span.end]
        if GENERAL.fullmatch(name.lower()):
            continue
        focus = found.setdefault(name.lower(), Focus(span, name))
        focus.sources.add(source)
        if span.start < focus.span.start:
            focus.span, focus.text = span, name
    return sorted(found.values(), key=lambda f: (f.span.start, f.span.end))[:_MOST]


def features(text: str, found: Sequence[Focus], cosines: Sequence[float]) -> list[list[float]]:
    """FEATURES of each candidate; `cosines` are those of the candidates to the whole text."""
    lower, names = text.lower(), [f.text.lower() for f in found]
    length = max(1, len(text))
    rows = []
    for focus, name, cosine in zip(found, names, cosines, strict=True):
        others = [n for n in names if n != name]
        n_words = len(name.split())
        rows.append(
            [
                *(float(s in focus.sources) for s in ("drug", "term", "phrase", "cue", "subject")),
                float(len(focus.sources)),
                float(min(lower.count(name), 4)),
                max(0, lower.find(name)) / length,
                max(0, lower.rfind(name)) / length,
                float(n_words == 1),
                float(n_words),
                len(name) / 20,
                cosine,
                math.log1p(len(found)),
                float(any(name in other for other in others)),
                float(any(other in name for other in others)),
            ]
        )
    return rows


def _spans(message: Message) -> Iterator[tuple[str, Span]]:
    """Every candidate with its source, repeated names too."""
    yield from (("drug", span) for span in message.drugs)
    yield from (("term", span) for span in message.terms)
    text = without_masks(message.text)
    for match in _PHRASE.finditer(text):
        inside = _content(text, Span(*match.span()))
        cut = max((i + 1 for i, w in enumerate(inside) if _is_function(text, w)), default=0)
        yield from _one("phrase", inside[cut:])
    for match in _CUE.finditer(text):
        inside = _content(text, Span(*match.span(1)))
        end = next((i for i, w in enumerate(inside) if _is_function(text, w)), len(inside))
        yield from _one("cue", inside[:end])
    if line := _SUBJECT.match(text, len(text) - len(text.lstrip())):
        inside = _content(text, Span(*line.span(1)))
        if len(inside) <= _LONGEST_SUBJECT:
            yield from _one("subject", inside)


def _one(source: str, inside: Sequence[Span]) -> Iterable[tuple[str, Span]]:
    return [(source, Span(inside[0].start, inside[-1].end))] if inside else []


def _content(text: str, span: Span) -> list[Span]:
    """The words of a span without function words at its edges."""
    inside = [Span(*m.span()) for m in _NAME.finditer(text, span.start, span.end)]
    while inside and _is_function(text, inside[0]):
        inside.pop(0)
    while inside and _is_function(text, inside[-1]):
        inside.pop()
    return inside


def _is_function(text: str, word: Span) -> bool:
    return text[word.start : word.end].lower() in FUNCTION_WORDS
