"""Runs the command line in this process and returns its exit code and output."""

from __future__ import annotations

import re
import socket
import sys
from dataclasses import dataclass

import pytest

from models.startup_message import LINE
from streams.__main__ import main

NOWHERE = "0" * 12
#: Printed once in a process, so by any of its tests.
FIRST_WORDS = re.compile(re.escape(LINE).replace(r"\{\}", r"\w+") + "\n")


@dataclass(frozen=True, slots=True)
class Answer:
    """The exit code of a command and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def error_line(self) -> str:
        """The one line of an error; log lines of libraries are ignored."""
        (line,) = [one for one in self.err.splitlines() if one.startswith("error:")]
        return line

    @property
    def one_line(self) -> str:
        """All output in one line, without the frame that is drawn around an error in the arguments."""
        return " ".join((self.out + self.err).replace("│", " ").split())


class CommandLine:
    """Runs `pvstream` with arguments; fails on a traceback."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.set = monkeypatch.setenv
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Answer:
        self._monkeypatch.setattr(sys, "argv", ["pvstream", *map(str, arguments)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        err = FIRST_WORDS.sub("", err)
        assert "Traceback" not in out + err
        code = ended.value.code
        return Answer(code if isinstance(code, int) else 0, out, err)


def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
