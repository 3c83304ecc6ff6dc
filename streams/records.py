"""What stands in the topics. Fields are only ever added, with defaults, so that old records stay readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, StringConstraints

from models.scores import Comparison
from models.types import Candidate, Expansion, Mention, Relation, ShortQuestion

#: Far above any post or note, far below what a broker takes as one message.
MAX_TEXT = 100_000

#: After a task, the key under which its shadow is announced.
SHADOW = ".shadow"
Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Inbound:
    """A source record as the broker gave it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float
    """Seconds since 1970, by the broker's record."""
    headers: Headers = ()
    token: Any = field(default=None, compare=False, repr=False)
    """What the transport wants back when the record is acked."""


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
Version = Annotated[str, StringConstraints(pattern="^[0-9a-f]{12}$")]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """The last one under a key holds; there is no order by time or number, so a rollback is an
    announcement.
    """

    task: Literal["ner", "acronym", "relation", "normalization", "summarization"]
    version: Version
    reason: Literal["publish", "rollback", "shadow"]
    announced_at: datetime
    previous: Version | None = None
    """What was live before. A worker that starts and cannot load `version` takes this one, which is what the
    others kept.
    """
    forced: bool = False
    """Published although it was not compared, or came out worse."""
    compared: Comparison | None = None
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of the records, for a shadow."""

    @property
    def key(self) -> str:
        return self.task + (SHADOW if self.reason == "shadow" else "")
