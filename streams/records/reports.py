"""Reports, and what the stages add to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, FailFast, Field, FiniteFloat, StringConstraints

from models.types import (
    Assertion,
    Candidate,
    CaseField,
    Coding,
    Evidence,
    Expansion,
    Mention,
    Relation,
    ShortQuestion,
    Span,
    Stated,
)

#: Characters; far more than any post or note has, far less than a broker accepts as one message.
MAX_TEXT = 100_000
#: Parts of a text of which a record says that they are read in another form.
MAX_FOLDED = 100
#: Of the drugs that a source states: characters of a name, and how many; characters of an indication.
MAX_DRUG, MAX_DRUGS, MAX_INDICATION = 256, 8, 256

Headers = Sequence[tuple[str, bytes | None]]
#: The timestamp of a message without one: Kafka has -1 ms.
NO_TIMESTAMP = -0.001


@dataclass(frozen=True, slots=True)
class Inbound:
    """A source record as the broker delivered it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float
    """Seconds since 1970, from the broker's record, or NO_TIMESTAMP; a producer may have set any number."""
    headers: Headers = ()
    token: Any = field(default=None, compare=False, repr=False)
    """The transport's own object, needed to acknowledge the record."""
    deaths: int = field(default=0, compare=False, repr=False)
    """How many processes have died while the record was in inference. One with any is inferred alone."""

    @property
    def time(self) -> datetime | None:
        """The timestamp; None where there is none. Raises ValueError for one outside of the calendar."""
        try:
            return None if self.timestamp == NO_TIMESTAMP else datetime.fromtimestamp(self.timestamp, UTC)
        except (OverflowError, OSError) as error:
            raise ValueError(str(error)) from None


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold more than white space")
    return text


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable")
    return text


def _in_calendar(time: datetime) -> datetime:
    """Without a zone it is read as UTC; ValueError where it has no equivalent in UTC."""
    try:
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        raise ValueError("must have an equivalent in UTC") from None


Id = Annotated[
    str,
    StringConstraints(min_length=1, max_length=256),
    AfterValidator(_printable),
    AfterValidator(_not_blank),
]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT), AfterValidator(_not_blank)]
#: The text of a final record: empty where the terms of its source forbid keeping it.
KeptText = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
#: HMAC-SHA256 of a handle; nothing else is ever kept of an author.
AuthorHash = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Language = Annotated[str, StringConstraints(min_length=1, max_length=35), AfterValidator(_printable)]
Country = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_printable)]
Permalink = Annotated[str, StringConstraints(min_length=1, max_length=2048), AfterValidator(_printable)]
DrugName = Annotated[str, StringConstraints(max_length=MAX_DRUG)]
DrugNames = Annotated[tuple[DrugName, ...], Field(max_length=MAX_DRUGS, fail_fast=True)]
Indication = Annotated[str, StringConstraints(max_length=MAX_INDICATION)]
#: A number that databases and `encode` can take; JSON has larger ones.
Number = Annotated[int, Field(ge=0, lt=2**63)]
Time = Annotated[datetime, AfterValidator(_in_calendar)]
MaskKind = Literal["user", "url", "email", "phone"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a source record on an input topic."""

    topic: str
    partition: Number
    offset: Number


@dataclass(frozen=True, slots=True)
class Masked:
    """A span of the text that stands in place of something which identifies a person."""

    kind: MaskKind
    start: Number
    end: Annotated[Number, Field(gt=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A text as it was received. Producers set the fields up to `indication` and those from `language` on;
    stages set the others and ignore what a producer writes there.
    """

    id: Id
    text: Text
    created_at: Time | None = None
    drug: DrugName | DrugNames | None = None
    """The drug that the report is about, or several, where the source states it (a review site does)."""
    indication: Indication | None = None
    """What the drug was taken for, where the source states it, in its words."""
    source: str = ""
    """The input topic of the report."""
    received_at: Time | None = None
    """The broker's timestamp of the source record; null where that has none."""
    releases: dict[str, str] = field(default_factory=dict)
    """Stage, or `judge`, to release version, for each model that contributed to the record, in order."""
    record_id: str = ""
    """`source/id/fingerprint/stage@version+version...`: equal for a redelivered record, different after a
    change of release or when the report is sent again with another text.
    """
    created_at_assumed_utc: bool = False
    """The producer's `created_at` had no time zone and was read as UTC."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Fields of the producer that the pipeline does not know, passed through; bounded in size."""
    meta_dropped: Number = 0
    """How many such fields were left out because they exceeded the bound."""
    origin: Origin | None = None
    """The source record; null in records of versions that did not state it. See `streams.order`."""
    generations: dict[str, Number] = field(default_factory=dict)
    """Stage to release generation, like `releases`: offset + 1 of the announcement that made the release
    live, 0 where none did.
    """
    language: Language | None = None
    """Of the text: as the source states it, or the stage `ner` identified it; mostly ISO 639-1."""
    permalink: Permalink | None = None
    """Address of the post; it leads to its author."""
    author: AuthorHash | None = None
    """Keyed hash of the author's handle; null where there is no key, or none may be kept."""
    country: Country | None = None
    """As the source states it."""
    duplicate_of: Id | None = None
    """Id of the first report with the text that this one repeats; null for the first one itself. In records
    of earlier versions also that of a similar text.
    """
    similar_to: Id | None = None
    """Id of the first of the earlier reports with a similar text, which may tell of the same case."""
    reworded: bool = False
    """Some words of these texts are others, so that only what is coded in both can agree."""
    aggregate_only: bool = False
    """The terms of the source forbid keeping the text beyond its coding; see `without_text`."""
    masked: Annotated[tuple[Masked, ...], FailFast()] = ()
    """What was masked in the text, in its order."""
    folded: Annotated[tuple[Span, ...], FailFast()] = ()
    """Parts of the text that the stages read in another form or not at all, in its order: styled or composed
    letters, invisible characters, markup. At most MAX_FOLDED, the last to the end of all further ones.
    """

    @property
    def is_clinical(self) -> bool:
        """Whether the text is a sentence of a clinical record: these alone pass the stage `acronym`."""
        return "acronym" in self.releases

    @property
    def stated_drugs(self) -> tuple[str, ...]:
        """The drugs that the source states, in its words."""
        names = (self.drug or "",) if self.drug is None or isinstance(self.drug, str) else self.drug
        return tuple(name for name in names if name.strip())

    @property
    def stated(self) -> Stated:
        """What the source states beside the text."""
        return Stated(self.stated_drugs, (self.indication or "").strip() or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedReport(Report):
    """A report and the long forms of its acronyms; the text itself is never changed."""

    expansions: Annotated[tuple[Expansion, ...], FailFast()] = ()
    undecided: Annotated[tuple[Expansion, ...], FailFast()] = ()
    """Acronyms whose best long form is not far enough ahead, with their candidates; they stay as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedReport(ExpandedReport):
    """A report and its mentions; of clinical sentences the stage `relation` adds the relations."""

    mentions: Annotated[tuple[Mention, ...], FailFast()] = ()
    relations: Annotated[tuple[Relation, ...], FailFast()] = ()
    read: bool | None = None
    """False: the tagger does not read the `language` of the text, so it has no mentions. Null in records of
    earlier versions, which state the language of such texts only.
    """
    language_score: FiniteFloat | None = None
    """How probable it is that the text is in a language which the tagger reads, 0 to 1; null for a few
    letters, for sentences, and in records of earlier versions. A text with a low one is read where it names a
    drug and a third of its words are English.
    """
    case_fields: Annotated[tuple[CaseField, ...], FailFast()] = ()
    """What the text states of a case: age, dose, time to onset and so on, in text order."""

    @property
    def was_read(self) -> bool:
        """Whether a lack of mentions says anything about the text."""
        return self.language is None if self.read is None else self.read

    def __post_init__(self) -> None:
        n = len(self.mentions)
        # Where the text was dropped, the spans are those of a text all the same.
        ends = [*(m.end for m in self.mentions), *(field.end for field in self.case_fields)]
        if max(ends, default=0) > (len(self.text) or MAX_TEXT):
            raise ValueError("a mention or field of a case ends after the text")
        if not all(0 <= r.head < n and 0 <= r.tail < n for r in self.relations):
            raise ValueError("a relation refers to a mention that does not exist")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedEvent:
    """An adverse event coded to the terminology, or NIL: then llt, pt and soc are null, and the candidates
    are the nearest terms.
    """

    mention: int
    """Position in the record's mentions."""
    drugs: Annotated[tuple[str, ...], FailFast()]
    """Suspected drugs, by their nonproprietary name where it is known."""
    drug_evidence: Evidence
    """A relation of the clinical sentence, the words or places in a post, the `drug` of the report, or that
    the post names no other drug.
    """
    llt: str | None
    pt: str | None
    soc: str | None
    score: FiniteFloat
    """Cosine similarity to the best candidate."""
    nil: bool
    candidates: Annotated[tuple[Candidate, ...], FailFast()]
    negated: bool = False
    """The text states that the event did not happen."""
    hypothetical: bool = False
    """The event is feared, or stated as possible."""
    other_experiencer: bool = False
    """The event happened, or may happen, to another person or an animal and not to the writer."""
    context_weight: float | None = None
    """Weight of the sentence in the mention's vector, 0 to 1; null where the model used no context."""
    serious: bool = False
    """The terminology marks the preferred term as medically important; false for NIL."""

    @classmethod
    def of(
        cls, mention: int, suspects: tuple[tuple[str, ...], Evidence], coding: Coding, state: Assertion
    ) -> CodedEvent:
        """The event of a mention: suspected drugs with evidence, code, and what the text states."""
        term = coding.term
        return cls(
            mention=mention,
            drugs=suspects[0],
            drug_evidence=suspects[1],
            llt=term.llt if term else None,
            pt=term.pt if term else None,
            soc=term.soc if term else None,
            score=coding.candidates[0].score if coding.candidates else 0.0,
            nil=coding.nil,
            candidates=coding.candidates,
            negated=state.negated,
            hypothetical=state.hypothetical,
            other_experiencer=state.other_experiencer,
            context_weight=coding.context_weight,
            serious=term is not None and coding.serious,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedReport(TaggedReport):
    """The final record of a post or a sentence, and of a question beside its `Summary`; spans are of the text
    also where that was dropped.
    """

    text: KeptText
    events: Annotated[tuple[CodedEvent, ...], FailFast()] = ()

    def __post_init__(self) -> None:
        super(CodedReport, self).__post_init__()
        if not all(0 <= e.mention < len(self.mentions) for e in self.events):
            raise ValueError("an event refers to a mention that does not exist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Report):
    """The short form of a question, final too."""

    text: KeptText
    summary: ShortQuestion


R = TypeVar("R", bound=Report)


def extend(kind: type[R], report: Report, **added: Any) -> R:
    """A record of type `kind` with all fields of `report` and the fields that a stage adds or replaces."""
    return kind(**({f.name: getattr(report, f.name) for f in fields(report)} | added))
