"""Reads the reports that producers write: accepts common formats, ignores fields that only stages may set."""

from __future__ import annotations

from codecs import BOM_UTF8
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from streams.codec import BadRecord, decode
from streams.dates import stated_time
from streams.records import (
    MAX_DRUGS,
    AuthorHash,
    Country,
    DrugName,
    Indication,
    Language,
    Origin,
    Permalink,
    Report,
)

#: Fields that many producers use in another form: such a value is an unknown field.
_TOLERATED: dict[str, TypeAdapter[Any]] = {
    "language": TypeAdapter(Language), "country": TypeAdapter(Country), "permalink": TypeAdapter(Permalink),
    "drug": TypeAdapter(DrugName | Annotated[list[DrugName], Field(max_length=MAX_DRUGS)]),
    "indication": TypeAdapter(Indication),
}  # fmt: skip
_AUTHOR = TypeAdapter(AuthorHash)
#: The fields that a producer sets; all other fields of `Report` belong to the pipeline.
PRODUCER_FIELDS = frozenset(
    {
        "id",
        "text",
        "created_at",
        "author",
        "duplicate_of",
        "similar_to",
        "reworded",
        "aggregate_only",
        "masked",
    }
    | _TOLERATED.keys()
)
_PIPELINE_FIELDS = frozenset(f.name for f in fields(Report)) - PRODUCER_FIELDS
#: In the order of the record.
PRODUCER_ORDER = tuple(f.name for f in fields(Report) if f.name in PRODUCER_FIELDS)
#: Bounds of `Report.meta`: its size as JSON, and the number of its fields.
MAX_META_BYTES, MAX_META_FIELDS = 16_384, 64


def read_report(data: bytes, origin: Origin | None = None, received: datetime | None = None) -> Report:
    """The report in a record of an input topic, with the given `origin`, `received` then (by default now);
    raises BadRecord, which does not quote the record.

    In addition to the strict form of `Report` it accepts a numeric id, and `created_at` in every form of
    `stated_time`. Fields of the pipeline are ignored, unknown fields are kept in `meta`, and so is a
    `created_at` that is not believed: then the time of receipt counts. An `author` that is not a hash is left
    out, so that no handle is passed on.
    """
    return report_of(read_object(data), origin, received)


def report_of(
    content: dict[str, Any], origin: Origin | None = None, received: datetime | None = None
) -> Report:
    """Like `read_report`, of the object that was read; changes it."""
    named = "author" in content and not _fits(_AUTHOR, content["author"])
    if named:
        del content["author"]
    strange = {n for n, kind in _TOLERATED.items() if n in content and not _fits(kind, content[n])}
    created = stated_time(content.get("created_at"), received or datetime.now(UTC))
    if created.doubt:
        strange.add("created_at")
    known = PRODUCER_FIELDS - strange
    report = {name: value for name, value in content.items() if name in known}
    if isinstance(report.get("id"), int) and not isinstance(report["id"], bool):
        report["id"] = str(report["id"])
    if created.believed:
        assumed = created.assumed_utc
        report |= {"created_at": created.believed.isoformat(), "created_at_assumed_utc": assumed}
    else:
        report.pop("created_at", None)
    unknown = [item for item in content.items() if item[0] not in known | _PIPELINE_FIELDS]
    try:
        meta, dropped = _bounded(unknown)
        own = {"meta": meta, "meta_dropped": dropped + named, "origin": origin}
        return decode(Report, orjson.dumps(report | own))
    except orjson.JSONEncodeError:
        # It writes 254 levels of lists and objects, and reads 1,024.
        raise BadRecord("nested too deeply") from None


def as_input(report: Report) -> bytes:
    """A report as a producer writes it, so that `read_report` gives an equal one."""
    created = report.created_at
    if created is not None and report.created_at_assumed_utc:
        created = created.replace(tzinfo=None)
    own = {name: getattr(report, name) for name in PRODUCER_ORDER} | {"created_at": created}
    return orjson.dumps(
        report.meta | {name: value for name, value in own.items() if value not in (None, False, ())}
    )


def _fits(kind: TypeAdapter[Any], value: object) -> bool:
    """Whether a field has the form that a record needs; null always has."""
    try:
        return value is None or bool(kind.validate_python(value, strict=True))
    except ValidationError:
        return False


def read_object(data: bytes) -> dict[str, Any]:
    """The object in a line of JSON; raises BadRecord, which quotes nothing of it."""
    try:
        # The first line of a file of Windows may begin with a byte order mark.
        content = orjson.loads(data.removeprefix(BOM_UTF8))
    except orjson.JSONDecodeError:
        raise BadRecord("Invalid JSON") from None
    if not isinstance(content, dict):
        raise BadRecord("Input should be an object")
    return content


def _bounded(items: list[tuple[str, Any]]) -> tuple[dict[str, Any], int]:
    """The first fields that fit, and the number of fields left out."""
    meta: dict[str, Any] = {}
    size = 2
    for name, value in items:
        size += len(orjson.dumps({name: value})) - 1
        if size > MAX_META_BYTES or len(meta) >= MAX_META_FIELDS:
            break
        meta[name] = value
    return meta, len(items) - len(meta)
