"""JSON Lines from a pipe or a file that grows; names of fields can be mapped."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
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

#: What a line may have; each can be read from a field of another name.
FIELDS = (
    "id", "text", "created_at", "language", "author", "country", "permalink", "repost_of", "drug",
    "indication", "deleted",
)  # fmt: skip
#: Under which the place in the file stands in a position.
FILE = ""
_FALSE = frozenset({"", "false", "f", "no", "n", "0", "null", "none"})
_OPTIONAL = ("author", "country", "permalink", "repost_of")


@dataclass(slots=True, kw_only=True)
class Ndjson:
    """A line with a true `deleted` deletes its id. Of a pipe nothing can be read again after a crash."""

    path: Path | None
    """A file; None: `pipe`."""
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
        file = GrowingFile(self.path, (position or {}).get(FILE))
        try:
            while True:
                grown = False
                while lines := await asyncio.to_thread(file.read_lines):
                    grown = True
                    yield self._step(lines, {FILE: file.place})
                if not grown and not self.follow:
                    return
                if not grown:
                    await asyncio.sleep(self.poll)
        finally:
            file.close()

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
