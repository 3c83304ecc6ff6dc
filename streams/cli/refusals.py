"""Lines that are refused: the first are printed, all are counted by reason, and go to a file on demand."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import orjson
from rich.console import Console

from streams.cli.terminal import say
from streams.input_rows import Refusal

#: Refused lines that are printed one by one; the others are only counted.
REFUSALS_SHOWN = 10


class RejectedFile:
    """The file of `--rejected`: JSON Lines with topic, line, reason and the original line. Only its user may
    read it, because it holds the texts. Without a path nothing is written. A context manager.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def __enter__(self) -> RejectedFile:
        if self._path is not None:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._file = os.fdopen(descriptor, "wb")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, topic: str, refusal: Refusal) -> None:
        if self._file is not None:
            original = refusal.original.decode("utf-8", "backslashreplace").rstrip("\r\n")
            line = {
                "topic": topic,
                "line": refusal.line,
                "reason": refusal.reason,
                "original": original,
            }
            self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


class Refusals:
    """What is refused of one input: the first lines are printed, all are counted, and go to the file."""

    def __init__(self, topic: str, rejected: RejectedFile, unit: str, console: Console) -> None:
        """`unit`: what the numbers are of, as `line`."""
        self._topic, self._rejected, self._unit, self._console = topic, rejected, unit, console
        self._reasons: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self._reasons.total()

    def add(self, refusal: Refusal) -> None:
        self._rejected.write(self._topic, refusal)
        if self.total < REFUSALS_SHOWN:
            say(f"{self._unit} {refusal.line} refused: {refusal.reason}", self._console)
        self._reasons[refusal.reason] += 1

    def summarize(self) -> None:
        """Prints the counts by reason, if not each line was printed."""
        if self.total > REFUSALS_SHOWN:
            for line in counted((self._topic, reason) for reason in self._reasons.elements()):
                say(line, self._console)


def counted(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each topic and reason, the most frequent first."""
    return [f"{topic}: {n} refused: {reason}" for (topic, reason), n in Counter(reasons).most_common()]
