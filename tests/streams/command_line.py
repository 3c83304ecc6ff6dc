"""The command line run in this process, and what it answers."""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass

import pytest

from streams.__main__ import main

NOWHERE = "0" * 12


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """The one line of an error; what a library logs stands in lines of its own."""
        (line,) = [one for one in self.err.splitlines() if one.startswith("error:")]
        return line

    @property
    def said(self) -> str:
        """All words in one line, without the frame that is drawn around a wrong argument."""
        return " ".join((self.out + self.err).replace("│", " ").split())


class CommandLine:
    """Runs the whole command line in this process."""

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
        assert "Traceback" not in out + err
        code = ended.value.code
        return Answer(code if isinstance(code, int) else 0, out, err)


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
