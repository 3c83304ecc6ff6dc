"""Lets aiokafka read records whose header names are not UTF-8.

The protocol calls header names strings, but brokers accept any bytes. aiokafka decodes them strictly inside
of a batch, so a single such record would raise on every attempt to fetch the partition, and nothing behind it
could ever be read. Here a batch that raises is read again with the undecodable bytes of the names escaped
(b"\\xff" becomes the four characters \\xff); all other batches are read as before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy

#: A batch begins with its base offset (8 bytes) and the length of what follows (4 bytes).
_PREFIX, _LENGTH = 12, struct.Struct(">8xi")


class _EscapingBuffer(bytearray):
    """A buffer whose slices escape what is not UTF-8 when they are decoded."""

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        return _EscapingBuffer(item) if isinstance(item, bytearray) else item

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return bytes(self).decode(encoding, "backslashreplace")


class _EscapingBatch(_DefaultRecordBatchPy):  # type: ignore[misc]
    """A batch in the current format (v2) whose header names may be any bytes."""

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        self._buffer: bytearray = _EscapingBuffer(self._buffer)


class TolerantBatch:
    """A batch of aiokafka that falls back to `_EscapingBatch` when a header name cannot be decoded."""

    def __init__(self, batch: Any, data: bytes) -> None:
        self._batch = batch
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        last = -1
        try:
            for record in self._batch:
                last = record.offset
                yield record
        except UnicodeDecodeError:
            yield from (r for r in _EscapingBatch(bytearray(self._data)) if r.offset > last)


class TolerantRecords:
    """aiokafka's `MemoryRecords`, the batches of one fetch, with tolerant batches."""

    def __init__(self, data: bytes) -> None:
        self._records = _MemoryRecords(data)
        self._data = data
        self._position = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    def has_next(self) -> bool:
        return bool(self._records.has_next())

    def next_batch(self) -> TolerantBatch:
        """The next batch; its bytes are found by the lengths of the batches before it."""
        start = self._position
        (length,) = _LENGTH.unpack_from(self._data, start)
        self._position = start + _PREFIX + length
        return TolerantBatch(self._records.next_batch(), self._data[start : self._position])


_MemoryRecords = fetcher.MemoryRecords


def install() -> None:
    """Makes every consumer of this process tolerant; calling it again changes nothing."""
    fetcher.MemoryRecords = TolerantRecords
