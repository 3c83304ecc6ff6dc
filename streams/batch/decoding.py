"""Decodes the records that a stage has taken, and cuts them into the batches of its inferences."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from streams.batch.provenance import received_at
from streams.codec import BadRecord, decode
from streams.dead_letters.headers import Fault, describe_error
from streams.input_reports import read_report
from streams.order import own_origin, tombstone_headers
from streams.records import Inbound
from streams.topics import INPUTS, Topic

#: A text with more than this share of the characters of a batch is a batch of its own, so that shorter ones
#: do not wait for it.
LARGE_SHARE = 1 / 4
#: Bytes of the key and the headers of a tombstone: an id has up to 1,024, a name of a topic up to 249.
MAX_TOMBSTONE = 2048
#: Processes that have died while they inferred a record, after which it becomes a dead letter. At the second
#: and at the third of them the record was alone in inference.
DEATHS = 3
_DIED = f"{DEATHS} processes died while they inferred it, the last two nothing else"
log = logging.getLogger(__name__)


class Decoded(NamedTuple):
    """A source record and its report; the fault with which it becomes a dead letter; or None, a tombstone."""

    record: Inbound
    report: Any


def decode_record(source: Topic[Any], record: Inbound) -> Decoded:
    """Never raises: whatever is wrong with a record is its fault."""
    if record.value is None:
        return Decoded(record, _fault_of_tombstone(source, record))
    assert source.record is not None
    if record.deaths >= DEATHS:
        log.error("%s/%d %d becomes a dead letter: %s", record.topic, record.partition, record.offset, _DIED)
        return Decoded(record, Fault("process_died", _DIED))
    try:
        # Also checks the timestamp, which a producer may have set to anything.
        received_at(record)
        if source in INPUTS:
            return Decoded(record, read_report(record.value, own_origin(record)))
        return Decoded(record, decode(source.record, record.value))
    except BadRecord as error:
        return Decoded(record, Fault("bad_record", str(error)))
    except Exception as error:
        return Decoded(record, Fault("bad_record", describe_error(error)))


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


def bounded_batches(records: Sequence[Decoded], limit: int) -> Iterator[Sequence[Decoded]]:
    """The records in turn, in batches whose texts have at most `limit` characters together. A text that is
    longer than LARGE_SHARE of that is alone, and so is a record in whose inference a process has died.

    The size of a batch bounds the time of its inference, which must stay far below the stall deadline.
    """
    batch: list[Decoded] = []
    size, large = 0, False
    for one in records:
        own = 0 if one.report is None or isinstance(one.report, Fault) else len(one.report.text)
        is_large = own > LARGE_SHARE * limit or one.record.deaths > 0
        if batch and own and (is_large or large or size + own > limit):
            yield batch
            batch, size = [], 0
        large = is_large if own else large
        batch.append(one)
        size += own
    if batch:
        yield batch
