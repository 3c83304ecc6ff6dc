"""Draws a flame graph from the stacks that py-spy has counted: a function is as wide as the time it ran.

    py-spy record --duration 60 --rate 50 --function --format raw --output stacks.txt --pid PID
    python -m benchmarks.flame stacks.txt docs/pictures/pipeline.svg

Functions with less than SMALLEST of the time are left out, which keeps the picture small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from training.common.program_help import run_program

#: Pixels, and the share of the time below which a function is left out.
WIDTH, ROW, LETTER, SMALLEST = 1200, 17, 6.6, 0.004
#: Packages whose first function begins a stack; the frames of Python and asyncio before it are removed.
#: Functions that only call an inference are left out.
BEGINS = re.compile(r"\((streams|models|faust|mode|aiokafka|torch)/")
CALLERS = re.compile(r"^(InferenceWorkers\._limited|Progress\.infer|_call_as|_call) ")
#: Functions in which an event loop waits.
WAITING = "EpollSelector.select "
LINE = re.compile(r":\d+\)$")
COLOURS = {
    "streams/": "#7fb3d5",
    "models/": "#f0b27a",
    "torch/": "#e59866",
    "faust/": "#bb8fce",
    "aiokafka/": "#a9cce3",
}
OTHER = "#d5d8dc"


@dataclass(slots=True)
class Frame:
    """A function and what it calls; `samples` has those of its callees too."""

    name: str
    samples: int = 0
    calls: dict[str, Frame] = field(default_factory=dict)

    @property
    def height(self) -> int:
        return 1 + max((call.height for call in self.calls.values()), default=0)


def read(lines: Iterable[str]) -> Frame:
    """The tree of stacks `outer;inner count`; of stacks without a function of BEGINS only the innermost."""
    root = Frame("all threads")
    for line in lines:
        stack, _, count = line.rpartition(" ")
        if WAITING in stack:
            continue
        names = [LINE.sub(")", name) for name in stack.split(";") if not CALLERS.match(name)]
        first = next((i for i, name in enumerate(names) if BEGINS.search(name)), len(names) - 1)
        frame = root
        frame.samples += int(count)
        for name in names[first:]:
            frame = frame.calls.setdefault(name, Frame(name))
            frame.samples += int(count)
    return root


def without_small(frame: Frame, least: float) -> Frame:
    """The same tree without functions that have fewer samples."""
    kept = {name: without_small(call, least) for name, call in frame.calls.items() if call.samples >= least}
    return Frame(frame.name, frame.samples, kept)


def draw(root: Frame) -> str:
    """An SVG; the outermost function is at the bottom."""
    height = root.height * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="monospace" font-size="11">'
    ]
    _draw(root, 0.0, height - ROW, WIDTH / root.samples, root.samples, parts)
    return "\n".join([*parts, "</svg>", ""])


def _draw(frame: Frame, x: float, y: int, scale: float, total: int, parts: list[str]) -> None:
    width = frame.samples * scale
    place = re.search(r"\((.*)\)", frame.name)
    colour = next((c for begin, c in COLOURS.items() if place and place[1].startswith(begin)), OTHER)
    title = escape(f"{frame.name} {frame.samples / total:.1%}")
    parts.append(
        f'<g><title>{title}</title><rect x="{x:.1f}" y="{y}" width="{width - 0.4:.1f}" height="{ROW - 1}" '
        f'fill="{colour}"/>'
    )
    if (letters := int(width / LETTER) - 1) > 2:  # noqa: PLR2004
        name = frame.name if len(frame.name) <= letters else frame.name[: letters - 1] + "…"
        parts.append(f'<text x="{x + 3:.1f}" y="{y + ROW - 5}">{escape(name)}</text>')
    parts.append("</g>")
    for call in sorted(frame.calls.values(), key=lambda one: -one.samples):
        _draw(call, x, y - ROW, scale, total, parts)
        x += call.samples * scale


def main(
    stacks: Annotated[Path, typer.Argument(help="stacks of py-spy, in its format raw")],
    picture: Annotated[Path, typer.Argument(help="SVG file to write")],
    smallest: Annotated[float, typer.Option(help="share of the time below which a function is left out")] = (
        SMALLEST
    ),
) -> None:
    root = read(stacks.read_text(encoding="utf-8").splitlines())
    picture.write_text(draw(without_small(root, smallest * root.samples)), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
