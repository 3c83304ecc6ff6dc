"""Headers of a dead letter: why, where and by which release a record could not be processed."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Literal

from streams.records import Inbound

#: How often a redrive has sent the record back; the only `pv-` header that goes back with a record.
ATTEMPTS = "pv-attempts"
Reason = Literal["bad_record", "poison", "output_too_large"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a record cannot be processed; `detail` must not quote its text."""

    reason: Reason
    detail: str


def dead_letter_headers(record: Inbound, stage: str, fault: Fault, release: str) -> list[tuple[str, bytes]]:
    """The record's own headers, its number of redrive attempts, and headers that describe the fault."""
    own = [h for h in record.headers if h[0] == ATTEMPTS or not h[0].startswith("pv-")]
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


def describe_error(error: BaseException) -> str:
    """Type and place of an error without its message, which may quote a patient's text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
