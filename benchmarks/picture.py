"""Draws what `make demo` prints, as an SVG for the README.

    python -m benchmarks.picture --output docs/pictures/demo.svg

All samples run through the pipeline; the picture shows some of the results, and the counts at the end
without the speed, which depends on the machine.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from training.common.program_help import run_program

WIDTH = 110
TITLE = "make demo"
#: Results that are shown, right ones and wrong ones.
SHOWN = ("post-008", "post-046", "sentence-003", "question-002")
#: The first line of a result: the topic that it came from, and its id.
_RESULT = re.compile(r"^(?:posts|sentences|questions) (\S+)")
_SPEED = re.compile(r"^\d+ records in ")
#: What moves the cursor, or erases a line: the progress bar overwrites itself.
_CONTROL = re.compile(r"\x1b\[\??\d*[AKhl]")
#: The fonts that rich names are on another site; without them any monospaced font is used.
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def demo(*arguments: str) -> str:
    """The output of `pvstream demo`, with colours. Raises CalledProcessError when it fails."""
    environment = os.environ | {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": str(WIDTH)}
    command = [sys.executable, "-m", "streams", "demo", "--show", "1000", *arguments]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout.decode()


def lines_of(output: str) -> list[Text]:
    """Lines as they stay on a terminal: of one that was overwritten, the last text."""
    return [Text.from_ansi(_CONTROL.sub("", line.rsplit("\r", 1)[-1])) for line in output.split("\n")]


def selected(lines: Sequence[Text], shown: Sequence[str]) -> list[Text]:
    """What comes before the first result and after the last, and between them the results with these ids.

    The line with the speed, and what follows it, is left out.
    """
    results: dict[str, list[Text]] = {}
    head: list[Text] = []
    counts: list[Text] = []
    current = head
    for line in lines:
        if _SPEED.match(line.plain):
            break
        if found := _RESULT.match(line.plain):
            current = results.setdefault(found[1], [])
        elif results and line.plain and not line.plain.startswith(" "):
            current = counts
        current.append(line)
    return [*head, *(line for id_ in shown for line in results[id_]), *counts]


def svg(lines: Sequence[Text]) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for line in lines:
        line.rstrip()
        console.print(line)
    return _FONTS.sub("", console.export_svg(title=TITLE, unique_id="demo"))


def main(
    output: Annotated[Path, typer.Option(help="SVG file to write")],
    show: Annotated[list[str] | None, typer.Option(help="id of a sample that is shown; repeatable")] = None,
) -> None:
    output.write_text(svg(selected(lines_of(demo()), show or SHOWN)), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
