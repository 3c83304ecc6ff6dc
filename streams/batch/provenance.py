"""The provenance of an output: source, origin, releases with their generations, and record id."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from streams.aggregate import without_text
from streams.codec import BadRecord, encode
from streams.records import NO_TIMESTAMP, Inbound, Report


class Maker(NamedTuple):
    """The stage that made an output, the version and generation of its release, and whether the output may
    keep the text of reports with `aggregate_only`.
    """

    stage: str
    version: str
    generation: int
    keep_text: bool = False


def with_provenance(output: Any, report: Report, maker: Maker, record: Inbound) -> Any:
    """The output with its source, origin, receiving time, releases, their generations and record id; without
    its text where that must not be kept.

    Nothing here depends on when the output is made, so a repeat of a record gives an equal output.
    """
    source = report.source or record.topic
    releases = {**report.releases, maker.stage: maker.version}
    versions = "+".join(releases.values())
    complete = replace(
        output,
        source=source,
        received_at=report.received_at or _received_first(report, record),
        releases=releases,
        record_id=f"{source}/{report.id}/{_fingerprint(report)}/{maker.stage}@{versions}",
        origin=report.origin,
        generations={**report.generations, maker.stage: maker.generation},
    )
    return complete if maker.keep_text else without_text(complete)


def received_at(record: Inbound) -> datetime | None:
    """The broker's timestamp of a record; None where it has none. Raises BadRecord where it is outside of the
    calendar.
    """
    if record.timestamp == NO_TIMESTAMP:
        return None
    try:
        return datetime.fromtimestamp(record.timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        raise BadRecord("the timestamp of the record is out of range") from None


def _received_first(report: Report, record: Inbound) -> datetime | None:
    """When the report was received, for the first stage that states it: the record of a later stage has the
    time of the stage before, which a repeat has not.
    """
    return None if report.releases and report.origin is not None else received_at(record)


def _fingerprint(report: Report) -> str:
    """Eight hexadecimal digits of the text, time and drug: a report edited under its old id is no repeat."""
    content = encode((report.text, report.created_at, report.drug))
    return hashlib.blake2b(content, digest_size=4).hexdigest()
