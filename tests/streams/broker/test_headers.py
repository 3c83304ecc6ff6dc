"""Headers of records: the trace context that is passed on, and names that are not UTF-8."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c

from streams.broker.tolerant_headers import TolerantRecords, install
from streams.broker.trace_context import trace_headers, without_trace

TRACE, PARENT = b"4bf92f3577b34da6a3ce929d0e0e4736", b"00f067aa0ba902b7"
VALID = b"00-%s-%s-01" % (TRACE, PARENT)
STATE = b"congo=t61rcWkgMzE,4rojo@v=00f067aa0ba902b7"


@pytest.mark.parametrize("state", [STATE, b"a=1, b=2,,c=3", b"a=" + b"x" * 256, b"a= b"])
def test_a_valid_context_is_passed_on_unchanged(state: bytes) -> None:
    headers = [("own", b"1"), ("tracestate", state), ("traceparent", VALID)]
    assert dict(trace_headers(headers)) == {"traceparent": VALID, "tracestate": state}
    assert without_trace(headers) == [("own", b"1")]


@pytest.mark.parametrize(
    ("headers", "passed"),
    [
        ([("traceparent", VALID), ("tracestate", b"a=1"), ("tracestate", b"b=2")],
         [("traceparent", VALID), ("tracestate", b"a=1,b=2")]),
        # Of a later version only the fields of this one.
        ([("traceparent", b"01" + VALID[2:] + b"-what a later version adds")], [("traceparent", VALID)]),
        ([("traceparent", VALID), ("traceparent", VALID)], []),
    ],
)  # fmt: skip
def test_states_are_joined_later_versions_cut_and_two_parents_dropped(headers: Any, passed: Any) -> None:
    assert list(trace_headers(headers)) == passed


@pytest.mark.parametrize(
    "value",
    [
        None, b"", VALID.upper(), VALID + b"\n", VALID + b"-more", b"ff" + VALID[2:], VALID[:-1],
        b"00-" + b"0" * 32 + VALID[35:], VALID[:36] + b"0" * 16 + b"-01", b"my name is Ann",
    ],
)  # fmt: skip
def test_a_malformed_parent_is_dropped_with_its_state(value: bytes | None) -> None:
    assert list(trace_headers([("traceparent", value), ("tracestate", STATE)])) == []


@pytest.mark.parametrize(
    "state",
    [
        b"no value", b"Upper=1", b"a=1,a=2", b"a=b=c", b"a=\xff", b"a=" + b"x" * 257,
        b",".join(b"k%d=1" % i for i in range(33)),
        b"a=" + b"x" * 200 + b",b=" + b"x" * 200 + b",c=" + b"x" * 200,
    ],
)  # fmt: skip
def test_a_malformed_or_long_state_is_dropped_and_the_parent_is_kept(state: bytes) -> None:
    assert list(trace_headers([("traceparent", VALID), ("tracestate", state)])) == [("traceparent", VALID)]


#: Place of the checksum in a batch; it covers what follows it.
CRC = 17
NAME, RAW = b"QQQQ", b"\xff\xfe\x80a"


def batch(base: int, hostile: int | None, codec: int = 0) -> bytes:
    """Three records; the header of one has a name that is not UTF-8."""
    builder = _DefaultRecordBatchBuilderPy(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, batch_size=1 << 16,
    )  # fmt: skip
    for i in range(3):
        headers = [(NAME.decode(), b"value"), ("null", None)] if i == hostile else [("plain", b"x")]
        builder.append(i, 1_760_000_000_000 + i, b"key-%d" % i, b"value-%d" % i, headers)
    data = bytearray(builder.build())
    if hostile is not None and not codec:
        place = data.index(NAME)
        data[place : place + len(NAME)] = RAW
    struct.pack_into(">q", data, 0, base)
    struct.pack_into(">I", data, CRC, calc_crc32c(bytes(data[CRC + 4 :])))
    return bytes(data)


def read(kind: type, data: bytes) -> list[tuple[int, bytes, list[tuple[str, bytes | None]]]]:
    records, found = kind(data), []
    while records.has_next():
        part = records.next_batch()
        assert part.validate_crc()
        found += [(r.offset, r.value, list(r.headers)) for r in part]
    return found


def test_aiokafka_itself_cannot_read_such_a_batch() -> None:
    with pytest.raises(UnicodeDecodeError):
        read(MemoryRecords, batch(0, 1))


@pytest.mark.parametrize("hostile", [0, 1, 2])
def test_every_record_is_read_once_and_the_name_is_escaped(hostile: int) -> None:
    found = read(TolerantRecords, batch(0, None) + batch(3, hostile) + batch(6, None))
    assert [offset for offset, _, _ in found] == list(range(9))
    escaped = [(r"\xff\xfe\x80a", b"value"), ("null", None)]
    assert [h for _, _, h in found] == [escaped if i == 3 + hostile else [("plain", b"x")] for i in range(9)]


@pytest.mark.parametrize("codec", [0, 1])
def test_batches_without_such_names_are_read_as_aiokafka_reads_them(codec: int) -> None:
    data = batch(0, None, codec) + batch(3, None, codec)
    assert read(TolerantRecords, data) == read(MemoryRecords, data)


def test_it_is_what_the_consumers_of_this_process_use() -> None:
    install()
    install()
    assert fetcher.MemoryRecords is TolerantRecords
    assert len(read(fetcher.MemoryRecords, batch(0, 1))) == 3
