"""Headers of a dead letter: why, where and by which release a record could not be processed."""

from __future__ import annotations

import hashlib
import traceback
from dataclasses import dataclass
from typing import Literal

from streams.broker.deletions import Place
from streams.broker.ranges import OFFSET_DIGITS
from streams.broker.trace_context import trace_headers, without_trace
from streams.records import Headers, Inbound
from streams.topics import MAX_DEAD_MESSAGE

#: Upper bound, in bytes, of what the record format adds to a header.
HEADER_OVERHEAD = 10
#: How often a redrive has sent the record back; the only `pv-` header that goes back with a record.
ATTEMPTS = "pv-attempts"
#: A longer number was not written by a redrive.
ATTEMPTS_DIGITS = 9
Reason = Literal["bad_record", "poison", "process_died", "output_too_large", "not_encodable", "skipped"]
#: A dead letter whose value was cut: the full length in bytes, and the sha256 of the whole value.
TRUNCATED, DIGEST = "pv-truncated", "pv-sha256"
#: Size of the largest dead letter, with room for what the record format and the headers of a fault add.
MAX_LETTER_BYTES = MAX_DEAD_MESSAGE - 64 * 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a record cannot be processed; `detail` must not quote its text."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter as it is sent."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def dead_letter(record: Inbound, stage: str, fault: Fault, release: str) -> Letter:
    """The record with headers that describe the fault. What exceeds the largest dead letter is cut: first the
    value, whose length and digest are then in the headers, then the record's own headers, then the key.
    """
    described = dead_letter_headers(record, stage, fault, release)
    key, value, headers = record.key, record.value or b"", described
    room = MAX_LETTER_BYTES - len(key or b"") - _size(headers)
    if len(value) <= room:
        return Letter(key, record.value, headers)
    cut = [(TRUNCATED, str(len(value)).encode()), (DIGEST, hashlib.sha256(value).hexdigest().encode())]
    if room < 0:
        headers = [h for h in headers if h[0].startswith("pv-")]
        room = MAX_LETTER_BYTES - len(key or b"") - _size(headers)
    if room < 0:
        key, room = None, MAX_LETTER_BYTES - _size(headers)
    return Letter(key, value[:room], [*headers, *cut])


def _size(headers: Headers) -> int:
    return sum(len(name.encode()) + len(value or b"") + HEADER_OVERHEAD for name, value in headers)


def dead_letter_headers(
    record: Inbound, stage: str, fault: Fault, release: str
) -> list[tuple[str, bytes | None]]:
    """The record's own headers, its number of redrive attempts, and headers that describe the fault. A trace
    context is kept only where it is valid, and the attempts only where a redrive may have written them.
    """
    own = [h for h in without_trace(record.headers) if not h[0].startswith("pv-")]
    own += trace_headers(record.headers)
    if attempts := attempts_of(record.headers):
        own.append((ATTEMPTS, str(attempts).encode()))
    described = {
        "pv-stage": stage,
        "pv-reason": fault.reason,
        "pv-detail": fault.detail[:500],
        "pv-release": release,
        "pv-topic": record.topic,
        "pv-partition": str(record.partition),
        "pv-offset": str(record.offset),
    }
    return [*own, *((name, value.encode()) for name, value in described.items())]


def attempts_of(headers: Headers) -> int:
    """How often the record was sent back before; 0 if its header is missing or not a number."""
    text = dict(headers).get(ATTEMPTS) or b""
    return int(text) if text.isdigit() and len(text) <= ATTEMPTS_DIGITS else 0


def place_of(headers: Headers) -> Place | None:
    """Where the letter's source record is in its topic; None where the headers do not say it."""
    texts = [
        (dict(headers).get(name) or b"").decode(errors="replace") for name in ("pv-partition", "pv-offset")
    ]
    if not all(text.isascii() and text.isdecimal() and len(text) <= OFFSET_DIGITS for text in texts):
        return None
    return Place(int(texts[0]), int(texts[1]))


def describe_error(error: BaseException) -> str:
    """Type and place of an error without its message, which may quote a patient's text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
