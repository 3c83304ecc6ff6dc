"""What stands in the topics. Fields are only ever added, with defaults, so that old records stay readable."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, StringConstraints

from models.types import Candidate, Expansion, Mention, Relation, ShortQuestion

#: Far above any post or note, far below what a broker takes as one message.
MAX_TEXT = 100_000


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold more than white space")
    return text


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable")
    return text


Id = Annotated[
    str,
    StringConstraints(min_length=1, max_length=256),
    AfterValidator(_printable),
    AfterValidator(_not_blank),
]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT), AfterValidator(_not_blank)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A text as it was received. Everything from `source` on is filled in on the way and may be left out by a
    producer.
    """

    id: Id
    text: Text
    created_at: datetime | None = None
    drug: str | None = None
    """The drug that the source says the report is about (a review site knows), where it does."""
    source: str = ""
    """Topic that the report entered by."""
    received_at: datetime | None = None
    """When it was ingested; the broker's timestamp of the source record where a producer left it out."""
    releases: dict[str, str] = field(default_factory=dict)
    """Stage to version, for every model that had a part in this record, in the order of the stages."""
    record_id: str = ""
    """`source/id/fingerprint/stage@version+version...`: the same for a redelivered record, another after a
    reload or when a report comes again with another text.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedReport(Report):
    """A report and what its acronyms stand for; the text itself is never changed."""

    expansions: tuple[Expansion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedReport(ExpandedReport):
    """A report and its mentions; relations where the stage looks for them, which `ner` does not."""

    mentions: tuple[Mention, ...] = ()
    relations: tuple[Relation, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.mentions)
        if any(m.end > len(self.text) for m in self.mentions):
            raise ValueError("a mention ends after the text")
        if not all(0 <= r.head < n and 0 <= r.tail < n for r in self.relations):
            raise ValueError("a relation names a mention that is not there")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedEvent:
    """An adverse event coded to the terminology, or NIL: then llt, pt and soc are null and the candidates say
    what came near.
    """

    mention: int
    """Position in the record's mentions."""
    drugs: tuple[str, ...]
    """Suspected drugs, by nonproprietary name where it is known."""
    drug_evidence: Literal["relation", "report", "only_drug_in_text", "none"]
    llt: str | None
    pt: str | None
    soc: str | None
    score: float
    """Cosine to the best candidate."""
    nil: bool
    candidates: tuple[Candidate, ...]
    negated: bool = False
    """The text says that it did not happen."""
    hypothetical: bool = False
    """The text fears it, or says that it may happen."""
    other_experiencer: bool = False
    """It is somebody else's, or an animal's, and not the writer's."""
    context_weight: float | None = None
    """Share of the sentence in the mention's vector, 0 to 1; null where there was none, or no model of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedReport(TaggedReport):
    """The end of the line for posts and sentences."""

    events: tuple[CodedEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Report):
    """The end of the line for questions."""

    summary: ShortQuestion


R = TypeVar("R", bound=Report)


def extend(kind: type[R], report: Report, **added: Any) -> R:
    """All of `report` and what a stage adds to it, as a record of the stage's own kind."""
    return kind(**{f.name: getattr(report, f.name) for f in fields(report)}, **added)
