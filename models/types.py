"""What models take and give; plain records without torch, so that readers of a topic need not install it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TASKS = ("ner", "acronym", "relation", "normalization", "summarization")

DRUG = "DRUG"
ADE = "ADE"
INDICATION = "INDICATION"
WITHDRAWAL = "WITHDRAWAL"
SYMPTOM = "SYMPTOM"
LABELS = (DRUG, ADE, INDICATION, WITHDRAWAL, SYMPTOM)
#: What is coded to a preferred term; indications and the patient's other symptoms are no adverse events.
CODED_LABELS = (ADE, WITHDRAWAL)


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of Unicode code points in a report's original text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"span {self.start}:{self.end} is empty or negative")


@dataclass(frozen=True, slots=True)
class Mention:
    """A tagged piece of the original text; `score` is the mean probability of its words' tags."""

    start: int
    end: int
    text: str
    label: str
    score: float
    generic: str | None = None
    """The drug's nonproprietary name where the lexicon knows it."""

    def __post_init__(self) -> None:
        Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One training example that spoke for or against a relation; distance is 1 - cosine."""

    id: str
    distance: float


@dataclass(frozen=True, slots=True)
class Relation:
    """Drug `head` caused effect `tail`; both are positions in the record's mentions."""

    head: int
    tail: int
    score: float
    neighbours: tuple[Neighbour, ...] = ()


@dataclass(frozen=True, slots=True)
class Expansion:
    """An acronym in the original text and what it stands for."""

    start: int
    end: int
    short_form: str
    long_form: str
    score: float
    source: Literal["text", "dictionary"]

    def __post_init__(self) -> None:
        Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Query:
    """A mention to be coded: `surface` is what is embedded (an acronym's long form where one is known)."""

    text: str
    start: int
    end: int
    surface: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A concept of the terminology: lowest-level term, preferred term, system organ class, and the cosine of
    what was nearest: the lowest-level term, or where it is given the phrase of a patient.
    """

    llt: str
    pt: str
    soc: str
    score: float
    phrase: str | None = None


@dataclass(frozen=True, slots=True)
class Coding:
    """The k best candidates, best first, one for each preferred term; `nil`: none is near enough to be
    trusted.
    """

    candidates: tuple[Candidate, ...]
    nil: bool
    context_weight: float | None = None
    """How much of the mention's vector came from its sentence, 0 to 1; None where the mention was read
    alone.
    """


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a text says about an effect that it names; all False: it happened to the one who writes."""

    negated: bool = False
    hypothetical: bool = False
    """Feared, possible or only to be expected."""
    other_experiencer: bool = False
    """It happened, or may happen, to somebody else or to an animal."""


@dataclass(frozen=True, slots=True)
class TaggedText:
    """Mentions in text order and the relations between them."""

    mentions: tuple[Mention, ...]
    relations: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True)
class ShortQuestion:
    """The question that matters; an extractive one has its place in the original text."""

    text: str
    method: Literal["extractive", "abstractive"]
    score: float
    start: int | None = None
    end: int | None = None
