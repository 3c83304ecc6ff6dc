"""Files of JSON Lines that grow, rotate, are replaced and are gone."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from streams.sources.protocols.growing_file import GrowingFile
from streams.sources.protocols.ndjson import Ndjson
from tests.streams.polling import until
from tests.streams.sources.json_lines import line, malformed, read_to_the_end
from tests.streams.sources.kept import KeptDelivery, runner
from tests.streams.sources.players.running import running


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
async def test_the_last_line_of_a_file_may_lack_its_end_until_later(tmp_path: Path, end: bytes) -> None:
    file, before = tmp_path / "posts.jsonl", malformed()
    file.write_bytes(line(1) + line(2).rstrip())
    first = await read_to_the_end(file)
    assert list(first.state()) == ["post-1", "post-2"]
    append(file, end + line(3))
    assert list((await read_to_the_end(file, first.positions[-1][1])).state()) == ["post-3"]
    assert malformed() == before


async def test_it_resumes_behind_the_last_line_and_reads_a_replaced_file_anew(tmp_path: Path) -> None:
    file = tmp_path / "posts.jsonl"
    file.write_bytes(line(1) + line(2))
    first = await read_to_the_end(file)
    position = first.positions[-1][1]
    append(file, line(3))
    assert list((await read_to_the_end(file, position)).state()) == ["post-3"]
    other = tmp_path / "other"
    other.write_bytes(line(4))
    other.replace(file)
    assert list((await read_to_the_end(file, position)).state()) == ["post-4"]
    file.write_bytes(line(1) + line(2))
    delivery = await read_to_the_end(file, {"": [file.stat().st_ino, len(line(1))]})
    assert list(delivery.state()) == ["post-2"]


async def test_a_file_that_is_rotated_away_is_read_to_its_end_first(tmp_path: Path) -> None:
    file = tmp_path / "posts.jsonl"
    file.write_bytes(line(1))
    delivery = KeptDelivery()
    async with running(runner(Ndjson(path=file, poll=0.05), delivery)):
        await until(lambda: len(delivery.sent) == 1)
        with file.open("ab") as writer:
            file.rename(tmp_path / "posts.jsonl.1")
            writer.write(line(2))
        file.write_bytes(line(3))
        await until(lambda: len(delivery.sent) == 3)
    assert list(delivery.state()) == ["post-1", "post-2", "post-3"]


@pytest.mark.parametrize("follow", [False, True])
async def test_a_file_that_is_written_anew_in_its_place_is_read_anew(tmp_path: Path, follow: bool) -> None:
    file = tmp_path / "posts.jsonl"
    file.write_bytes(line(1) + line(2))
    if not follow:
        position = (await read_to_the_end(file)).positions[-1][1]
        file.write_bytes(line(3) + line(4) + line(5))
        delivery = await read_to_the_end(file, position)
        assert sorted(delivery.state()) == ["post-3", "post-4", "post-5"]
        return
    delivery = KeptDelivery()
    async with running(runner(Ndjson(path=file, poll=0.01), delivery)):
        await until(lambda: len(delivery.state()) == 2)
        file.write_bytes(line(3) + line(4) + line(5))
        await until(lambda: len(delivery.state()) == 5)
        append(file, line(6))
        await until(lambda: len(delivery.state()) == 6)


@pytest.mark.parametrize("lines", [2, 60])
@pytest.mark.parametrize("moment", ["_was_rewritten", "_head"])
def test_a_file_that_is_written_anew_while_it_is_read_loses_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int, moment: str
) -> None:
    """After the look whether it was written anew, and after the read."""
    file, new = tmp_path / "posts.jsonl", [line(n) for n in range(200, 200 + 2 * lines)]
    file.write_bytes(b"".join(line(n) for n in range(100, 100 + lines)))
    growing = GrowingFile(file, None)
    assert len(growing.read_lines()) == lines
    append(file, line(150) * (moment == "_head"))
    original, calls = getattr(GrowingFile, moment), count(1)

    def rewrites(self: GrowingFile) -> object:
        if moment == "_head":  # the second is the one behind the read
            if next(calls) == 2:
                file.write_bytes(b"".join(new))
            return original(self)
        found = original(self)
        if next(calls) == 1:
            file.write_bytes(b"".join(new))
        return found

    monkeypatch.setattr(GrowingFile, moment, rewrites)
    read = growing.read_lines()
    while more_lines := growing.read_lines():
        read += more_lines
    growing.close()
    assert set(read) >= set(new)
    assert moment != "_head" or line(150) in read


async def test_a_pipe_is_read_to_its_end() -> None:
    read_end, write_end = os.pipe()
    delivery = KeptDelivery()
    with os.fdopen(read_end, "rb") as pipe, os.fdopen(write_end, "wb") as writer:
        task = asyncio.create_task(runner(Ndjson(path=None, pipe=pipe), delivery).run())
        writer.write(line(1))
        writer.flush()
        await until(lambda: len(delivery.sent) == 1)
        writer.write(line(2))
        writer.close()
        await task
    assert list(delivery.state()) == ["post-1", "post-2"]


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_by_cut_lines_and_restarts(tmp_path: Path, seed: int) -> None:
    draw, file = random.Random(seed), tmp_path / "posts.jsonl"
    data = b"".join(line(n) if draw.random() > 0.05 else b'{"id": \n' + line(n) for n in range(300))
    file.touch()
    state: dict[str, str | None] = {}
    position, offset = None, 0
    while offset < len(data):
        delivery = KeptDelivery()
        one = runner(Ndjson(path=file, poll=0.005), delivery, position)
        async with running(one):
            for _ in range(draw.randrange(1, 6)):
                with file.open("ab") as writer:
                    size = draw.randrange(1, 900)
                    writer.write(data[offset : offset + size])
                    offset += size
                await asyncio.sleep(0.01)
            if draw.random() < 0.5:
                # A crash: what was sent since the last checkpoint comes again.
                await one.checkpoint()
        position = delivery.positions[-1][1] if delivery.positions else position
        state |= delivery.state()
    state |= (await read_to_the_end(file, position)).state()
    assert state == {f"post-{n}": f"awake {n}" for n in range(300)}


def append(file: Path, content: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(content)


class Meanwhile:
    """A file in which something is written right after a read has come to its end the given time."""

    def __init__(self, file: BinaryIO, write: Callable[[], object], times: int) -> None:
        self._file = file
        self._write = write
        self._times = times

    def readline(self, size: int) -> bytes:
        line = self._file.readline(size)
        if not line.endswith(b"\n"):
            self._times -= 1
            if self._times == 0:
                self._write()
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def writing_meanwhile(monkeypatch: pytest.MonkeyPatch, write: Callable[[], object], times: int) -> None:
    opened, unused = Path.open, [write]

    def open_(path: Path, mode: str = "r") -> Any:
        file: Any = opened(path, mode)
        return Meanwhile(file, unused.pop(), times) if mode == "rb" and unused else file

    monkeypatch.setattr(Path, "open", open_)


async def test_a_line_whose_second_half_comes_while_its_first_is_read_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, whole = tmp_path / "posts.jsonl", line(2)
    file.write_bytes(line(1) + whole[:10])
    writing_meanwhile(monkeypatch, lambda: append(file, whole[10:]), times=1)
    before = malformed()
    assert (await read_to_the_end(file)).state() == {"post-1": "awake 1", "post-2": "awake 2"}
    assert malformed() == before


async def test_a_line_that_comes_right_before_the_file_is_replaced_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, new = tmp_path / "posts.jsonl", tmp_path / "new"
    file.write_bytes(line(1))
    new.write_bytes(line(3))

    def replace() -> None:
        append(file, line(2))
        new.rename(file)

    writing_meanwhile(monkeypatch, replace, times=2)
    assert set((await read_to_the_end(file)).state()) == {"post-1", "post-2", "post-3"}
