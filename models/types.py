"""Inputs and outputs of the models, without torch, which readers of a topic need not install."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import FailFast

TASKS = ("ner", "acronym", "relation", "normalization", "summarization")

#: The second reader of the stage `ner`, and all tasks whose releases a worker loads.
JUDGE = "judge"
RELEASED = (*TASKS, JUDGE)

DRUG = "DRUG"
ADE = "ADE"
INDICATION = "INDICATION"
WITHDRAWAL = "WITHDRAWAL"
SYMPTOM = "SYMPTOM"
LABELS = (DRUG, ADE, INDICATION, WITHDRAWAL, SYMPTOM)
#: Labels of the mentions that are coded; indications and other symptoms of the patient are no adverse events.
CODED_LABELS = (ADE, WITHDRAWAL)

OWN, NEGATED, HYPOTHETICAL, OTHER = "own", "negated", "hypothetical", "other"
RELIEVED, NO_EVENT = "relieved", "none"
#: What an effect in a text is: an event of the writer's (or patient's), one that is denied, feared or asked
#: about, or another's; what the drug is taken for, or relieved; or no medical event at all.
STATUSES = (OWN, NEGATED, HYPOTHETICAL, OTHER, "indication", RELIEVED, NO_EVENT)

#: What a text states of a case beside its drugs and effects.
CASE_FIELDS = (
    "age", "age_group", "sex", "pregnancy", "dose", "route", "duration", "onset", "outcome", "dechallenge",
    "serious",
)  # fmt: skip

#: Why a drug is suspected: a relation of the clinical sentence, the words or places in a post, what its
#: source states, or that the post names no other drug.
Evidence = Literal["relation", "text", "report", "only_drug_in_text", "none"]
#: What a mention of a drug names that is no single product.
DrugKind = Literal["class", "regimen"]


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of Unicode code points in a report's text; ValueError when empty or negative."""

    start: int
    end: int

    def __post_init__(self) -> None:
        _check(self.start, self.end)


def _check(start: int, end: int) -> None:
    if not 0 <= start < end:
        raise ValueError(f"span {start}:{end} is empty or negative")


@dataclass(frozen=True, slots=True)
class Mention:
    """A tagged span of the original text; `score` is the mean probability of its words' tags."""

    start: int
    end: int
    text: str
    label: str
    score: float
    generic: str | None = None
    """the drug's nonproprietary name, where a table has it; of a class or regimen its name"""
    status: str | None = None
    """of STATUSES, for an effect that a tagger's status head has judged"""
    status_score: float | None = None
    """probability of the status"""
    kind: DrugKind | None = None
    """of a drug that is no single product"""
    members: Annotated[tuple[str, ...], FailFast()] = ()
    """the nonproprietary names of a class or regimen, where a text names it first"""

    def __post_init__(self) -> None:
        _check(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A training pair, one of the nearest to a relation; distance is 1 - cosine."""

    id: str
    """of its sentence"""
    distance: float
    drug: str = ""
    effect: str = ""
    related: bool | None = None
    """Whether the drug caused the effect there; null, and the names empty, in records of earlier versions."""
    source: str = ""
    """Of the nearest three: the sentence where it may be copied, else the abstract that it stands in."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Drug `head` caused effect `tail`; both are indices into the record's mentions."""

    head: int
    tail: int
    score: float
    neighbours: Annotated[tuple[Neighbour, ...], FailFast()] = ()


@dataclass(frozen=True, slots=True)
class LongForm:
    """What an acronym may stand for, and its share of all long forms' scores."""

    long_form: str
    score: float


@dataclass(frozen=True, slots=True)
class Expansion:
    """An acronym in the original text and its long form."""

    start: int
    end: int
    short_form: str
    long_form: str
    score: float
    source: Literal["text", "dictionary"]
    candidates: Annotated[tuple[LongForm, ...], FailFast()] = ()
    """the best long forms, best first, where the first is not far enough ahead to be decided on"""

    def __post_init__(self) -> None:
        _check(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Stated:
    """What the source of a text states beside it, in its words."""

    drugs: tuple[str, ...] = ()
    """that the text is about"""
    indication: str | None = None
    """what they were taken for"""


@dataclass(frozen=True, slots=True)
class CaseField:
    """What a text states of a case at `start:end`: a name of CASE_FIELDS with its value in one form."""

    field: str
    start: int
    end: int
    value: str | None
    """Age in years, dose in mg or in its unit, times as durations of ISO 8601, a range with two dots between
    its ends; else a word. Null where no number is stated.
    """
    score: float
    """share of right ones among fields of its kind that were read"""

    def __post_init__(self) -> None:
        _check(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Case:
    """A text with the mentions that were found in it, and what its source states; a judge's input."""

    text: str
    mentions: tuple[Mention, ...]
    stated: Stated = Stated()


@dataclass(frozen=True, slots=True)
class Query:
    """A mention to be coded, at `start:end` of `text`; `surface` is the surface form that is embedded: the
    mention as written, or an acronym's long form where one is known.
    """

    text: str
    start: int
    end: int
    surface: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A concept of the terminology: lowest-level term, preferred term and system organ class. `score` is the
    cosine of the mention with that term or, where a patient's phrase was nearer, with that phrase.
    """

    llt: str
    pt: str
    soc: str
    score: float
    phrase: str | None = None
    """the phrase; "review 12" where that decision of a reviewer was on nearly the same words"""


@dataclass(frozen=True, slots=True)
class Coding:
    """The k best candidates, best first, one per preferred term; `nil`: the terminology seems to lack it."""

    candidates: tuple[Candidate, ...]
    nil: bool
    context_weight: float | None = None
    """weight of the sentence in the mention's vector, 0 to 1; None where the mention was embedded alone"""
    confidence: float | None = None
    """how likely the terminology has the concept, 0 to 1, by the release's rule for NIL; None without one"""
    serious: bool = False
    """whether the terminology marks the best candidate's preferred term as medically important"""

    @property
    def term(self) -> Candidate | None:
        """The best candidate, unless the coding is NIL."""
        return self.candidates[0] if self.candidates and not self.nil else None


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a text states about an effect that it mentions; all False: it happened to the writer."""

    negated: bool = False
    hypothetical: bool = False
    """feared, possible or expected"""
    other_experiencer: bool = False
    """it happened, or may happen, to another person or an animal"""


@dataclass(frozen=True, slots=True)
class TaggedText:
    """Mentions in text order and the relations between them."""

    mentions: tuple[Mention, ...]
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True)
class ShortQuestion:
    """The short form of a consumer question, as it is shown.

    An extractive one is a part of the text with the names that it lacks, and has the offsets of its sentence
    in the original text, or of its two; a decoder writes an abstractive one; an edited one is in records of
    earlier versions, which could change what was extracted. Where names were inserted that the question is
    about, `focus` is the first of them, with its own offsets.
    """

    text: str
    method: Literal["extractive", "edited", "abstractive"]
    score: float
    start: int | None = None
    end: int | None = None
    focus: str | None = None
    focus_start: int | None = None
    focus_end: int | None = None
