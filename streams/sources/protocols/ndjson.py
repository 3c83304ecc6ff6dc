"""JSON Lines from a pipe, a file that grows, or all files of a folder; names of fields can be mapped."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
import zlib
from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from streams.codec import BadRecord
from streams.input_reports import read_object, report_of
from streams.intake.items import Deletion, Item, Post
from streams.pipe import PipeThread
from streams.sources.protocols.connection import MAX_LINE, language_code
from streams.sources.source import Backoff, Position, Step

log = logging.getLogger(__name__)
#: What a line may have; each can be read from a field of another name.
FIELDS = (
    "id", "text", "created_at", "language", "author", "country", "permalink", "repost_of", "drug", "deleted",
)  # fmt: skip
SUFFIXES = (".jsonl", ".ndjson", ".json")
#: Lines of one step.
LINES_AT_ONCE = 256
#: Files of a folder that are kept open, so that each is read to its end where it is replaced. A process may
#: often open no more than 1,024.
MAX_OPEN = 256
#: Bytes at the beginning of a file by which it is known, and parts of a place.
HEAD, PARTS = 1024, 3
#: Files whose places a position has: it is one message, of at most 1 MiB.
MAX_PLACES = 10_000
_FALSE = frozenset({"", "false", "f", "no", "n", "0", "null", "none"})
_OPTIONAL = ("author", "country", "permalink", "repost_of")


@dataclass(slots=True, kw_only=True)
class Ndjson:
    """A line with a true `deleted` deletes its id. Of a pipe nothing can be read again after a crash."""

    path: Path | None
    """A file or a folder; None: `pipe`."""
    pipe: BinaryIO | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    """Name in FIELDS to the name in the lines; a dot leads into an object."""
    follow: bool = True
    """Wait for more at the end."""
    name: str = "ndjson"
    backoff: Backoff = field(default_factory=Backoff)
    reuses_ids: bool = True
    poll: float = 0.5
    """Seconds between two looks for more."""

    @property
    def key(self) -> str:
        return "ndjson/" + hashlib.sha256(str(self.path and self.path.absolute()).encode()).hexdigest()[:16]

    async def read(self, position: Position | None) -> AsyncGenerator[Step, None]:
        yield Step()
        if self.path is None:
            assert self.pipe is not None
            with PipeThread() as thread:
                while line := await thread.call(partial(_read_line, self.pipe)):
                    yield self._step([line], None)
            return
        files: dict[str, _GrowingFile] = {}
        try:
            async for step in self._read_files(files, position or {}):
                yield step
        finally:
            for file in files.values():
                file.close()

    async def _read_files(
        self, files: dict[str, _GrowingFile], position: Position
    ) -> AsyncGenerator[Step, None]:
        places: dict[str, list[int]] = {name: list(place) for name, place in position.items()}
        latest: dict[str, _GrowingFile] = {}
        while True:
            progressed = False
            listed = await asyncio.to_thread(self._files)
            for name, path in listed.items():
                files.setdefault(name, _GrowingFile(path, places.get(name)))
            for name in [*listed, *(files.keys() - listed.keys())]:
                file = files[name]
                grown = False
                while lines := await self._lines(file):
                    grown = progressed = True
                    places.pop(name, None)
                    places[name] = file.place
                    yield self._step(lines, _latest(places, listed))
                _pause_others(latest, name, file, grown=grown)
                if name not in listed and file.is_over():
                    file.close()
                    del files[name]
                    latest.pop(name, None)
            if not progressed:
                if not self.follow:
                    return
                await asyncio.sleep(self.poll)

    async def _lines(self, file: _GrowingFile) -> list[bytes]:
        """The next lines. In a folder a file that cannot be read, such as another user's, does not stop the
        others; it is tried again with each look for more.
        """
        try:
            lines = await asyncio.to_thread(file.read_lines)
        except OSError as error:
            if self.path is None or not self.path.is_dir():
                raise
            if file.is_readable:
                log.warning("%s: a file of the folder cannot be read: %s", self.name, error.strerror)
            file.is_readable = False
            file.pause()
            return []
        file.is_readable = True
        return lines

    def _files(self) -> dict[str, Path]:
        assert self.path is not None
        if not self.path.is_dir():
            return {"": self.path}
        found = (p for p in sorted(self.path.iterdir()) if p.suffix in SUFFIXES and p.is_file())
        # A name may be that of a person; the position has no such thing.
        return {hashlib.sha256(p.name.encode(errors="replace")).hexdigest()[:16]: p for p in found}

    def _step(self, lines: list[bytes], position: Position | None) -> Step:
        items: list[Item] = []
        malformed = 0
        for line in lines:
            if not line.strip():
                continue
            try:
                items.append(self._item(line))
            except ValueError:
                malformed += 1
        moments = [_seconds(i.created_at) for i in items if isinstance(i, Post) and i.created_at]
        return Step(
            items=tuple(items), malformed=malformed, position=position, at=moments[-1] if moments else None
        )

    def _item(self, line: bytes) -> Item:
        """Raises ValueError, of which BadRecord is one."""
        if len(line) > MAX_LINE:
            raise ValueError("too long")
        content = read_object(line)
        values = {name: _value(content, self.fields.get(name, name)) for name in FIELDS}
        for name in ("id", "author", "repost_of"):
            if isinstance(values[name], int) and not isinstance(values[name], bool):
                values[name] = str(values[name])
        if _is_true(values["deleted"]):
            if not isinstance(values["id"], str):
                raise BadRecord("id: Input should be a valid string")
            return Deletion(values["id"])
        wanted = {
            name: values[name] for name in ("id", "text", "created_at", "drug") if values[name] is not None
        }
        text = values["text"]
        # A text that is empty or too long is an edit all the same, which takes back what it replaces.
        report = report_of(wanted | {"text": "-"} if isinstance(text, str) else wanted)
        created = report.created_at
        return Post(
            id=report.id,
            text=text,
            # The intake assumes UTC again, and notes it.
            created_at=created.replace(tzinfo=None) if created and report.created_at_assumed_utc else created,
            language=language_code(values["language"]),
            drugs=report.stated_drugs,
            **{name: values[name] for name in _OPTIONAL if isinstance(values[name], str)},
        )


class _GrowingFile:
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
        self.is_readable = True

    def read_lines(self) -> list[bytes]:
        """Up to LINES_AT_ONCE lines; none where there is nothing new, no file, or `close` came before."""
        with self._lock:
            return [] if self._closed else self._read()

    def pause(self) -> None:
        """Closes the file until the next read."""
        with self._lock:
            self._close()

    def is_over(self) -> bool:
        """Of a file whose path is gone, whether nothing more can come: it was deleted, not moved, or is
        closed.
        """
        with self._lock:
            return self._file is None or os.fstat(self._file.fileno()).st_nlink == 0

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
        lines: list[bytes] = []
        for _ in range(LINES_AT_ONCE):
            line, size = _read_bounded(self._file)
            if not line.endswith(b"\n") and not _is_whole(line):
                self._file.seek(self.place[1])
                break
            lines.append(line)
            self.place = [self.place[0], self.place[1] + size]
        if lines:
            self.place = [*self.place, self._checksum()]
        return lines

    def _was_rewritten(self) -> bool:
        """Whether other content was written over the file, or a new file has got its inode."""
        return len(self.place) == PARTS and self.place[2] != self._checksum()

    def _checksum(self) -> int:
        """Of the first HEAD bytes before the place."""
        assert self._file is not None
        return zlib.crc32(os.pread(self._file.fileno(), min(self.place[1], HEAD), 0))

    def _was_replaced(self) -> bool:
        """Whether the path names another file now, or the file is shorter than what was read of it."""
        assert self._file is not None
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return False
        return state.st_ino != self.place[0] or state.st_size < self.place[1]


def _latest(places: Mapping[str, list[int]], listed: Collection[str]) -> dict[str, list[int]]:
    """The position: the places of the files that are there, of at most MAX_PLACES, those that grew last."""
    there = [(name, place) for name, place in places.items() if name in listed]
    return dict(there[-MAX_PLACES:])


def _pause_others(latest: dict[str, _GrowingFile], name: str, file: _GrowingFile, *, grown: bool) -> None:
    """Of the files that are read, keeps those open that have grown `latest`, the last of all at the end."""
    if grown or len(latest) < MAX_OPEN:
        latest[name] = latest.pop(name, file)
    if len(latest) > MAX_OPEN:
        latest.pop(next(iter(latest))).pause()
    if name not in latest:
        file.pause()


def _read_bounded(file: BinaryIO) -> tuple[bytes, int]:
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


def _read_line(file: BinaryIO) -> bytes:
    """The next line of a pipe, which may have no end; empty at the end of the pipe."""
    return _read_bounded(file)[0]


def _seconds(moment: datetime) -> float:
    """Seconds since 1970; a time without a zone is in UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _is_true(value: object) -> bool:
    """Whether a line states a deletion. Exports of tables write truth as a word."""
    return value.strip().lower() not in _FALSE if isinstance(value, str) else bool(value)


def _value(content: Any, name: str) -> Any:
    """The field of that name, `a.b` being b in a; None where it is missing."""
    for part in name.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content
