"""Batches of records whose header names are not UTF-8, as a broker may deliver them."""

from __future__ import annotations

import struct

import pytest
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c

from streams.broker.tolerant_headers import TolerantRecords, install

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
