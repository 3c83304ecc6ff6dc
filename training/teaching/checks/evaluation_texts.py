"""The texts and mentions that models are evaluated on, with which the teaching corpus must share nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from training.common.corpora import ENCODING, in_form, json_lines, read_ade, read_psytar

#: Evaluation texts of the source tree.
IN_TREE = tuple(
    Path(__file__).parents[3] / folder
    for folder in ("tests/data/challenge", "tests/data/gold", "streams/samples")
)
#: Words of a text that is compared.
AT_LEAST = 3


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Every text of at least AT_LEAST words in every file below a folder, with its file and place. All
    strings of JSON and all cells of tables count, so that a new file needs no reader of its own.

    Raises ValueError for a file in a form that is not known.
    """
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".md"):
        if path.suffix not in FORMS:
            raise ValueError(f"{path.relative_to(folder)}: a file of evaluation data in an unknown form")
        name = path.relative_to(folder).as_posix()
        for number, text in enumerate(FORMS[path.suffix](path), 1):
            if len(text.split()) >= AT_LEAST:
                yield f"{name}, text {number}", text


def _json(path: Path) -> Iterator[str]:
    with in_form(path):
        content = json.loads(path.read_text(encoding=ENCODING))
    yield from _strings(content)


def _json_lines(path: Path) -> Iterator[str]:
    for _, line in json_lines(path):
        yield from _strings(json.loads(line))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        # Tokens of a sentence.
        if value and all(isinstance(inner, str) for inner in value):
            yield " ".join(value)
        else:
            for inner in value:
                yield from _strings(inner)


def _csv(path: Path) -> Iterator[str]:
    with in_form(path), path.open(encoding=ENCODING, newline="") as file:
        rows = list(csv.reader(file))
    for row in rows:
        yield from row


def _conll(path: Path) -> Iterator[str]:
    yield from (text.text for text in read_psytar(path))


def _separated(separator: str) -> Callable[[Path], Iterator[str]]:
    def cells(path: Path) -> Iterator[str]:
        with in_form(path):
            text = path.read_text(encoding=ENCODING)
        for line in text.splitlines():
            yield from line.split(separator)

    return cells


FORMS: dict[str, Callable[[Path], Iterator[str]]] = {
    ".json": _json,
    ".jsonl": _json_lines,
    ".csv": _csv,
    ".conll": _conll,
    ".rel": _separated("|"),
    ".tsv": _separated("\t"),
    ".txt": _separated(" NEG "),
}


def mentions(folder: Path) -> Iterator[tuple[str, str]]:
    """The mentions of the corpora below a folder, each with its file; absent files are passed over."""
    for path in sorted(folder.glob("psytar/*.conll")):
        yield from ((path.name, t.text[m.start : m.end]) for t in read_psytar(path) for m in t.mentions)
    if (folder / "ade/sentences.json").exists():
        for t in read_ade(folder / "ade").values():
            yield from (("ade", t.text[m.start : m.end]) for m in t.mentions)
    for path in sorted(folder.glob("psytar/*.csv")):
        with in_form(path), path.open(encoding=ENCODING, newline="") as file:
            rows = [row["mention"] for row in csv.DictReader(file)]
        yield from ((path.name, mention) for mention in rows)
    for path in [*folder.glob("tweets/*.jsonl"), *folder.glob("posts.jsonl")]:
        for _, line in json_lines(path):
            row = json.loads(line)
            for m in row.get("mentions", ()) if "text" in row else ():
                yield path.name, row["text"][m["start"] : m["end"]]
