"""A record that no retry can save: its original bytes, and in the headers why, where and by which release."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Literal

from streams.records import Inbound

#: How often a redrive has sent the record back; the one header of ours that a record takes along.
ATTEMPTS = "pv-attempts"
Reason = Literal["bad_record", "poison", "output_too_large"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a record cannot be processed; `detail` must not quote its text."""

    reason: Reason
    detail: str


def headers(record: Inbound, stage: str, fault: Fault, release: str) -> list[tuple[str, bytes]]:
    """The record's own headers, how often it was sent back, and those that say what happened to it."""
    own = [h for h in record.headers if h[0] == ATTEMPTS or not h[0].startswith("pv-")]
    why = {
        "pv-stage": stage,
        "pv-reason": fault.reason,
        "pv-detail": fault.detail[:500],
        "pv-release": release,
        "pv-topic": record.topic,
        "pv-partition": str(record.partition),
        "pv-offset": str(record.offset),
    }
    return [*own, *((name, value.encode()) for name, value in why.items())]


def describe(error: BaseException) -> str:
    """Kind and place of an error without its message, which may quote a patient's words."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
