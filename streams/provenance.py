"""What is written with an output (its provenance), and what must not be kept of it (a text)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from models.types import JUDGE, ShortQuestion
from streams.codec import BadRecord, encode
from streams.records import CodedEvent, CodedReport, Inbound, Report, Summary

if TYPE_CHECKING:
    from models.loading import Loaded

R = TypeVar("R", bound=Report)


class Maker(NamedTuple):
    """The stage that made an output, with the version and generation of its release, and of its judge's."""

    stage: str
    version: str
    generation: int
    judge: tuple[str, int] | None = None

    @classmethod
    def of(cls, stage: str, loaded: Loaded) -> Maker:
        """The stage with the releases that are loaded."""
        judge = loaded.judge
        own = None if judge is None else (judge.version, judge.generation)
        return cls(stage, loaded.version, loaded.generation, own)

    def releases(self) -> dict[str, str]:
        """Stage, and judge, to version."""
        return {self.stage: self.version} | ({JUDGE: self.judge[0]} if self.judge else {})

    def generations(self) -> dict[str, int]:
        """Stage, and judge, to generation."""
        return {self.stage: self.generation} | ({JUDGE: self.judge[1]} if self.judge else {})


def with_provenance(output: Any, report: Report, maker: Maker, record: Inbound) -> Any:
    """The output with its source, origin, receiving time, releases, their generations and record id.

    Nothing here depends on when the output is made, so a repeat of a record gives an equal output.
    """
    source = report.source or record.topic
    releases = report.releases | maker.releases()
    versions = "+".join(releases.values())
    return replace(
        output,
        source=source,
        received_at=report.received_at or _received_first(report, record),
        releases=releases,
        record_id=f"{source}/{report.id}/{_fingerprint(report)}/{maker.stage}@{versions}",
        origin=report.origin,
        generations=report.generations | maker.generations(),
    )


def received_at(record: Inbound) -> datetime | None:
    """The broker's timestamp of a record, if any. Raises BadRecord outside of the calendar."""
    try:
        return record.time
    except ValueError:
        raise BadRecord("the timestamp of the record is out of range") from None


def _received_first(report: Report, record: Inbound) -> datetime | None:
    """When the report was received, for the first stage that states it: the record of a later stage has the
    time of the stage before, which a repeat has not.
    """
    return None if report.releases and report.origin is not None else received_at(record)


def _fingerprint(report: Report) -> str:
    """Eight hexadecimal digits of text, time, drug and indication: an edit is no repeat."""
    stated = () if report.indication is None else (report.indication,)
    content = encode((report.text, report.created_at, report.drug, *stated))
    return hashlib.blake2b(content, digest_size=4).hexdigest()


def without_text(record: R) -> R:
    """A final record with `aggregate_only` without its text, all that quotes it, its indication, author,
    address and what it states of a case; any other record unchanged. Codes, scores, labels and spans stay.
    """
    if not record.aggregate_only or not isinstance(record, CodedReport | Summary):
        return record
    bare = replace(record, text="", masked=(), permalink=None, author=None, indication=None, meta={})
    if isinstance(bare, Summary):
        # Of the question neither its words nor the name that was inserted, which is the writer's too.
        return replace(bare, summary=ShortQuestion("", bare.summary.method, bare.summary.score))
    known = {name for m in bare.mentions for name in (m.generic, *m.members)}
    return replace(
        bare,
        expansions=(),
        undecided=(),
        case_fields=(),
        mentions=tuple(replace(m, text="") for m in bare.mentions),
        events=tuple(_with_known_drugs(event, known) for event in bare.events),
    )


def _with_known_drugs(event: CodedEvent, known: set[str | None]) -> CodedEvent:
    """The event without suspects that are words of the text: only a lexicon and the source name drugs."""
    if event.drug_evidence == "report":
        return event
    return replace(event, drugs=tuple(drug for drug in event.drugs if drug in known))
