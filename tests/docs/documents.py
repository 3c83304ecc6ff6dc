"""The README and the pages of docs/, taken apart: shell blocks and their commands, links, headings, prose."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCUMENTS = (README, *sorted((ROOT / "docs").rglob("*.md"), key=lambda path: path.name))
#: Commands of pvstream that need no broker.
ALONE = frozenset({"schema", "evaluate", "verify", "sign", "export-model"})

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\n\Z")
_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a shell block: its words, and the variables that are set for it."""

    document: str
    line: int
    words: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    not_run: str | None
    """the reason, where its block is marked"""

    def __str__(self) -> str:
        return f"{self.document}:{self.line}: {shlex.join(self.words)}"

    @property
    def options(self) -> list[str]:
        return [word.split("=", 1)[0] for word in self.words if word.startswith("--")]


def commands() -> list[Command]:
    """Every command of every block marked `sh`, document by document."""
    return [c for path in DOCUMENTS for c in commands_of(path)]


def commands_of(path: Path) -> Iterator[Command]:
    text = path.read_text(encoding="utf-8")
    for block in _FENCE.finditer(text):
        if block[1] != "sh":
            continue
        marked = _NOT_RUN.search(text[: block.start()])
        first = text[: block.start(2)].count("\n") + 1
        for offset, line in _joined(block[2].splitlines()):
            words = shlex.split(line, comments=True)
            variables = []
            while words and (found := _ASSIGNMENT.fullmatch(words[0])):
                variables.append((found[1], found[2]))
                words.pop(0)
            if words:
                yield Command(
                    str(path.relative_to(ROOT)), first + offset, tuple(words), tuple(variables),
                    marked[1] if marked else None,
                )  # fmt: skip


def _joined(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines with those that a backslash continues, each with the number of its first one."""
    begun, number = "", 0
    for i, line in enumerate(lines):
        number = number if begun else i
        begun += line.removesuffix("\\")
        if not line.endswith("\\"):
            if begun.strip():
                yield number, begun
            begun = ""


def languages(path: Path) -> list[str]:
    """What each fenced block is marked as."""
    return [block[1] for block in _FENCE.finditer(path.read_text(encoding="utf-8"))]


def links(path: Path) -> list[str]:
    return _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def sentences(path: Path) -> Iterator[str]:
    """The sentences of the prose as they are read, without tables, headings, code blocks and comments."""
    text = _COMMENT.sub("\n", _FENCE.sub("\n", path.read_text(encoding="utf-8")))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("`", "")
    lines = ["" if line.startswith(("|", "#", "![")) else line for line in text.splitlines()]
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", "\n".join(lines)):
        yield from (s for s in _SENTENCE_END.split(" ".join(paragraph.split())) if s)
