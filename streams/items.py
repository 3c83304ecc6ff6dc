"""A record on its way through a stage: decoded, and as it is sent."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from streams.codec import BadRecord, decode, encode
from streams.dead_letters.headers import Fault, describe_error
from streams.input_reports import read_report
from streams.order import own_origin, tombstone_headers
from streams.provenance import Maker, received_at, with_provenance, without_text
from streams.records import Inbound
from streams.topics import INPUTS, Topic

#: Bytes of the key and the headers of a tombstone: an id has up to 1,024, a name of a topic up to 249.
MAX_TOMBSTONE = 2048
#: Processes that have died while they inferred a record, after which it becomes a dead letter. At the second
#: and at the third of them the record was alone in inference.
DEATHS = 3
_DIED = f"{DEATHS} processes died while they inferred it, the last two nothing else"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Item:
    """A source record, filled on its way through a stage. With a fault it becomes a dead letter; with neither
    a report nor a fault it is a tombstone, which is passed on.
    """

    record: Inbound
    report: Any = None
    """What the record says."""
    output: Any = None
    """What the live model made of the report. It has its text, also where that must not be kept: it is to be
    compared, and written nowhere.
    """
    value: bytes | None = None
    """The output as it is sent."""
    fault: Fault | None = None


def decoded(source: Topic[Any], record: Inbound) -> Item:
    """The record with its report; never raises: whatever is wrong with it is its fault."""
    if record.value is None:
        return Item(record, fault=_fault_of_tombstone(source, record))
    assert source.record is not None
    if record.deaths >= DEATHS:
        log.error("%s/%d %d becomes a dead letter: %s", record.topic, record.partition, record.offset, _DIED)
        return Item(record, fault=Fault("process_died", _DIED))
    try:
        # Also checks the timestamp, which a producer may have set to anything.
        received = received_at(record)
        if source in INPUTS:
            return Item(record, read_report(record.value, own_origin(record), received))
        return Item(record, decode(source.record, record.value))
    except BadRecord as error:
        return Item(record, fault=Fault("bad_record", str(error)))
    except Exception as error:
        return Item(record, fault=Fault("bad_record", describe_error(error)))


def finished(item: Item, maker: Maker, *, keep_text: bool, limit: int) -> Item:
    """The item with its output's provenance and value, of `limit` bytes at most, or with its fault."""
    try:
        output = with_provenance(item.output, item.report, maker, item.record)
        value = encode(output if keep_text else without_text(output))
    except Exception as error:
        return Item(item.record, item.report, fault=Fault("not_encodable", describe_error(error)))
    if len(value) > limit:
        fault = Fault("output_too_large", f"{len(value)} bytes, the limit is {limit}")
        return Item(item.record, item.report, fault=fault)
    return Item(item.record, item.report, output, value)


def _fault_of_tombstone(source: Topic[Any], record: Inbound) -> Fault | None:
    """A key that is longer than any id deletes nothing, and the sink might refuse it at every attempt; so it
    might headers that no stage wrote. Without a key it is dropped, because a dead letter needs a key or a
    value.
    """
    if record.key is None:
        return None
    headers = tombstone_headers(source, record)
    size = len(record.key) + sum(len(name) + len(value or b"") for name, value in headers)
    return Fault("bad_record", "a deletion larger than that of any report") if size > MAX_TOMBSTONE else None
