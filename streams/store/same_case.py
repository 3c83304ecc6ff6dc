"""Which reports tell of one case: of similar texts those with the same content, as it was coded.

The intake states the first of the reports with similar texts (`similar_to`), in which no number, negation or
person differs. Whether two of them are one depends on what was coded in each, and on the author. This is a
comparison for equality, so that in a group each report agrees with each other.
"""

from __future__ import annotations

import hashlib

import orjson

from models.types import DRUG
from streams.records import CodedEvent, CodedReport


def group_of(record: CodedReport) -> str:
    """The group of a report, whatever else there is: reports of one group tell of one case. Where words are
    others and nothing was coded there is nothing that could agree, and the report is alone.
    """
    if record.reworded and not any(event.pt for event in record.events):
        return record.id
    content = orjson.dumps([_drugs(record), _events(record), record.author])
    digest = hashlib.blake2b(content, digest_size=6).hexdigest()
    return f"{record.similar_to or record.id}#{digest}"


def _drugs(record: CodedReport) -> list[str]:
    named = {m.generic or m.text for m in record.mentions if m.label == DRUG}
    suspected = {drug for event in record.events for drug in event.drugs}
    return sorted({name.casefold() for name in (*named, *suspected, *record.stated_drugs)})


def _events(record: CodedReport) -> list[tuple[str, bool, bool, bool]]:
    """Each event once, with its flags; one without a code by its words, if they are kept."""
    return sorted({
        (_term(record, event), event.negated, event.hypothetical, event.other_experiencer)
        for event in record.events
    })  # fmt: skip


def _term(record: CodedReport, event: CodedEvent) -> str:
    return event.pt or record.mentions[event.mention].text.casefold()
