"""Plays a program that writes JSON Lines into a file that grows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from tests.streams.sources.players.faults import FAULTS, LARGE, Fault, Faults
from tests.streams.sources.players.world import Happening, World

#: What can happen to a file; it answers no requests.
FILE_FAULTS: tuple[Fault, ...] = tuple(fault for fault in FAULTS if fault not in ("429", "503"))
#: Seconds for the second half of a line, and after a replacement: a reader must have seen the new file before
#: the next one comes.
HALF_SECONDS, REPLACED_SECONDS = 0.05, 0.4


def line(id_: str, happening: Happening, **fields: Any) -> bytes:
    """A happening as the source `ndjson` reads it."""
    deleted = {"deleted": True} if happening.kind == "delete" else {}
    return orjson.dumps({"id": id_, "text": happening.text, **deleted, **fields}) + b"\n"


class LinesFile:
    """Writes a world, `rate` lines a second, once it is told to `begin`; an async context manager."""

    def __init__(self, world: World, faults: Faults, folder: Path, rate: float = 200.0) -> None:
        self.world = world
        self.faults = faults
        self.file = folder / "posts.jsonl"
        self.file.touch()
        self.connections = 1
        """Files that were written."""
        self._rate = rate
        self._begun = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._writing = asyncio.create_task(self._write())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writing.cancel()
        await asyncio.gather(self._writing, return_exceptions=True)

    @property
    def is_over(self) -> bool:
        return self.world.is_over

    def begin(self) -> None:
        """The file is read from now on: what is in one that is replaced before would be lost."""
        self._begun.set()

    @staticmethod
    def id_of(number: int) -> str:
        return f"line-{number}"

    def expected(self) -> dict[str, str | None]:
        """The id of each report and its last text; None where it is deleted."""
        return {self.id_of(number): text for number, text in self.world.final.items()}

    async def _write(self) -> None:
        happenings = self.world.happenings
        await self._begun.wait()
        while not self.world.is_over:
            first = self.world.published
            fault = self.faults.draw()
            may_swap = (
                len(happenings) > first + 1 and happenings[first].number != happenings[first + 1].number
            )
            now = happenings[first : first + (2 if fault == "out_of_order" and may_swap else 1)]
            for happening in reversed(now):
                await self._write_one(fault, happening)
            self.world.publish(len(now))
            await asyncio.sleep(1 / self._rate)

    async def _write_one(self, fault: Fault | None, happening: Happening) -> None:
        id_ = self.id_of(happening.number)
        content = line(id_, happening)
        match fault:
            case "cut":
                await self._replace()
            case "mid_line":
                self._append(content[: len(content) // 2])
                await asyncio.sleep(HALF_SECONDS)
                content = content[len(content) // 2 :]
            case "malformed":
                self._append(b'{"id": "17"\n')
            case "silence":
                await asyncio.sleep(self.faults.silence)
            case "duplicate":
                content *= 2
            case "clock":
                content = line(id_, happening, created_at="2124-03-04T09:15:02Z")
            case "large":
                self._append(orjson.dumps({"id": "large", "text": "x" * LARGE}) + b"\n")
        self._append(content)

    async def _replace(self) -> None:
        """Another file of the same name takes its place."""
        new = self.file.with_suffix(".new")
        new.touch()
        new.rename(self.file)
        self.connections += 1
        await asyncio.sleep(REPLACED_SECONDS)

    def _append(self, content: bytes) -> None:
        with self.file.open("ab") as file:
            file.write(content)
