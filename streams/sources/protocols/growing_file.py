"""A file of lines that grows, and may be replaced, cut or written anew meanwhile."""

from __future__ import annotations

import os
import threading
import zlib
from pathlib import Path
from typing import BinaryIO

from streams.codec import BadRecord
from streams.input_reports import read_object
from streams.sources.protocols.connection import MAX_LINE

#: Most lines of one read.
LINES_AT_ONCE = 256
#: Bytes at the beginning of a file by which it is known, and parts of a place.
HEAD, PARTS = 1024, 3


class GrowingFile:
    """Reads the complete lines of a file, of which the last may lack its end. `place` is its inode, the
    offset behind the last line read, and a checksum of its first bytes, which earlier versions did not keep.
    A file that was replaced, cut or written anew is read from its beginning, the rest of the replaced one
    first.
    """

    def __init__(self, path: Path, place: list[int] | None) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._closed = False
        # A task that is cancelled closes the file while a thread may still be reading from it.
        self._lock = threading.Lock()
        self.place = place or [0, 0]

    def read_lines(self) -> list[bytes]:
        """Up to LINES_AT_ONCE lines; none where there is nothing new, no file, or `close` came before."""
        with self._lock:
            return [] if self._closed else self._read()

    def close(self) -> None:
        """Waits for a read in another thread."""
        with self._lock:
            self._closed = True
            self._close()

    def _read(self) -> list[bytes]:
        if self._file is None and not self._open():
            return []
        if self._was_rewritten():
            self._close()
            self.place = [self.place[0], 0]
            if not self._open():
                return []
        lines = self._complete()
        if not lines and self._was_replaced():
            # The last lines may have come after the read above.
            if lines := self._complete():
                return lines
            self._close()
            return self._complete() if self._open() else []
        return lines

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> bool:
        try:
            self._file = self._path.open("rb")
        except FileNotFoundError:
            return False
        state = os.fstat(self._file.fileno())
        inode, offset = self.place[:2]
        if state.st_ino != inode or state.st_size < offset:
            self.place = [state.st_ino, 0]
        self._file.seek(self.place[1])
        return True

    def _complete(self) -> list[bytes]:
        assert self._file is not None
        before, lines = self.place, list[bytes]()
        for _ in range(LINES_AT_ONCE):
            line, size = read_bounded(self._file)
            if not line.endswith(b"\n") and not _is_whole(line):
                self._file.seek(self.place[1])
                break
            lines.append(line)
            self.place = [self.place[0], self.place[1] + size]
        if lines:
            self._confirm(before, lines)
        return lines

    def _confirm(self, before: list[int], lines: list[bytes]) -> None:
        """Adds the checksum to the place behind the lines. If the file was written anew since the place was
        checked, the lines may be those of either content: they count, and the new one is read from its
        beginning.
        """
        head, known = self._head(), before[1]
        same = len(before) < PARTS or zlib.crc32(head[:known]) == before[2]
        if known < HEAD:
            same = same and head[known:] == b"".join(lines)[: HEAD - known]
        if same:
            self.place = [*self.place, zlib.crc32(head)]
        else:
            self._close()
            self.place = [self.place[0], 0]

    def _was_rewritten(self) -> bool:
        """Whether other content was written over the file, or a new file has got its inode."""
        return len(self.place) == PARTS and self.place[2] != zlib.crc32(self._head())

    def _head(self) -> bytes:
        """The first HEAD bytes before the place."""
        assert self._file is not None
        return os.pread(self._file.fileno(), min(self.place[1], HEAD), 0)

    def _was_replaced(self) -> bool:
        """Whether the path names another file now, or the file is shorter than what was read of it."""
        assert self._file is not None
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return False
        return state.st_ino != self.place[0] or state.st_size < self.place[1]


def read_bounded(file: BinaryIO) -> tuple[bytes, int]:
    """A line, cut after MAX_LINE + 1 bytes but with its end, and the bytes that it has in the file."""
    line = last = file.readline(MAX_LINE + 1)
    size = len(line)
    if size <= MAX_LINE:
        # Without an end, its rest may be there at the next read, and must not be skipped.
        return line, size
    while last and not last.endswith(b"\n"):
        last = file.readline(MAX_LINE)
        size += len(last)
    return (line if line.endswith(b"\n") or not last else line + b"\n"), size


def _is_whole(line: bytes) -> bool:
    """Whether the last line of a file, which has no end, has all of its object: no part of one is valid."""
    if len(line) > MAX_LINE or not line.rstrip().endswith(b"}"):
        return False
    try:
        read_object(line)
    except BadRecord:
        return False
    return True
