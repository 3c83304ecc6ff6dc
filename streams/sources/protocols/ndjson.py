"""JSON Lines from a pipe, a file that grows, or all files of a folder; names of fields can be mapped."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from streams.codec import BadRecord
from streams.dates import stated_time
from streams.input_reports import read_object, report_of
from streams.intake.items import Deletion, Item, Post
from streams.pipe import PipeThread
from streams.sources.protocols.connection import MAX_LINE, language_code
from streams.sources.protocols.growing_file import GrowingFile, read_bounded
from streams.sources.source import Backoff, Position, Step

log = logging.getLogger(__name__)
#: What a line may have; each can be read from a field of another name.
FIELDS = (
    "id", "text", "created_at", "language", "author", "country", "permalink", "repost_of", "drug",
    "indication", "deleted",
)  # fmt: skip
SUFFIXES = (".jsonl", ".ndjson", ".json")
#: Files of a folder that are kept open, so that each is read to its end where it is replaced. A process may
#: often open no more than 1,024.
MAX_OPEN = 256
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
        files: dict[str, GrowingFile] = {}
        try:
            async for step in self._read_files(files, position or {}):
                yield step
        finally:
            for file in files.values():
                file.close()

    async def _read_files(
        self, files: dict[str, GrowingFile], position: Position
    ) -> AsyncGenerator[Step, None]:
        places: dict[str, list[int]] = {name: list(place) for name, place in position.items()}
        latest: dict[str, GrowingFile] = {}
        while True:
            progressed = False
            listed = await asyncio.to_thread(self._files)
            for name, path in listed.items():
                files.setdefault(name, GrowingFile(path, places.get(name)))
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

    async def _lines(self, file: GrowingFile) -> list[bytes]:
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
        moments = (stated_time(i.created_at).seconds for i in reversed(items) if isinstance(i, Post))
        at = next(filter(None, moments), None)
        return Step(items=tuple(items), malformed=malformed, position=position, at=at)

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
            name: values[name] for name in ("id", "text", "drug", "indication") if values[name] is not None
        }
        text = values["text"]
        # A text that is empty or too long is an edit all the same, which takes back what it replaces.
        report = report_of(wanted | {"text": "-"} if isinstance(text, str) else wanted)
        return Post(
            id=report.id,
            text=text,
            created_at=values["created_at"],
            language=language_code(values["language"]),
            drugs=report.stated_drugs,
            indication=report.indication,
            **{name: values[name] for name in _OPTIONAL if isinstance(values[name], str)},
        )


def _latest(places: Mapping[str, list[int]], listed: Collection[str]) -> dict[str, list[int]]:
    """The position: the places of the files that are there, of at most MAX_PLACES, those that grew last."""
    there = [(name, place) for name, place in places.items() if name in listed]
    return dict(there[-MAX_PLACES:])


def _pause_others(latest: dict[str, GrowingFile], name: str, file: GrowingFile, *, grown: bool) -> None:
    """Of the files that are read, keeps those open that have grown `latest`, the last of all at the end."""
    if grown or len(latest) < MAX_OPEN:
        latest[name] = latest.pop(name, file)
    if len(latest) > MAX_OPEN:
        latest.pop(next(iter(latest))).pause()
    if name not in latest:
        file.pause()


def _read_line(file: BinaryIO) -> bytes:
    """The next line of a pipe, which may have no end; empty at the end of the pipe."""
    return read_bounded(file)[0]


def _is_true(value: object) -> bool:
    """Whether a line states a deletion. Exports of tables write truth as a word."""
    return value.strip().lower() not in _FALSE if isinstance(value, str) else bool(value)


def _value(content: Any, name: str) -> Any:
    """The field of that name, `a.b` being b in a; None where it is missing."""
    for part in name.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content
