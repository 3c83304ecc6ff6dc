"""Acronyms: the sense that a release finds nearest, on CASI and SDU@AAAI-22."""

from __future__ import annotations

import csv
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, ratio
from models.types import Span
from training.evaluations.measured import Measured

SPLITS = ("casi", "sdu22_scientific", "sdu22_legal")
PRIMARY = "accuracy"
DATA = {
    "casi": "CASI, dev rows whose text holds the acronym as a word",
    "sdu22_scientific": "SDU@AAAI-22 scientific English dev, rows whose text holds the acronym as a word",
    "sdu22_legal": "SDU@AAAI-22 legal English dev, rows whose text holds the acronym as a word",
}
MEASURES = (
    ratio(
        PRIMARY,
        "share of rows whose gold sense has the highest cosine of all that the data set gives the acronym",
        (0, 1),
    ),
)
BATCH = 64


class Row(NamedTuple):
    """An acronym in a text, the long forms to choose from, and the right one."""

    text: str
    span: Span
    senses: tuple[str, ...]
    gold: str

    @property
    def short_form(self) -> str:
        return self.text[self.span.start : self.span.end]


class Corpus(NamedTuple):
    data: str
    records: list[Row]


def read(data: Path, split: str, limit: int) -> Corpus:
    folder = data / "acronyms"
    if split == "casi":
        rows = read_casi(folder / "casi_dev.csv")
    else:
        rows = read_sdu(folder / f"{split}_dev.json", folder / f"{split}_dictionary.json")
    return Corpus(DATA[split], rows[:limit] if limit else rows)


def read_casi(path: Path) -> list[Row]:
    """CASI rows whose text holds the acronym; the senses of an acronym are those that its rows have."""
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    senses: dict[str, set[str]] = {}
    for row in found:
        senses.setdefault(row["acronym_"], set()).add(row["expansion"])
    rows = []
    for row in found:
        at = _whole_word(row["text"], row["acronym_"])
        if at is not None:
            rows.append(Row(row["text"], at, tuple(sorted(senses[row["acronym_"]])), row["expansion"]))
    return rows


def read_sdu(rows: Path, dictionary: Path) -> list[Row]:
    """SDU@AAAI-22 acronym disambiguation."""
    senses = json.loads(dictionary.read_text(encoding="utf-8"))
    out = []
    for row in json.loads(rows.read_text(encoding="utf-8")):
        at = _whole_word(row["sentence"], row["acronym"])
        if at is not None:
            out.append(Row(row["sentence"], at, tuple(senses[row["acronym"]]), row["label"]))
    return out


def _whole_word(text: str, short_form: str) -> Span | None:
    at = text.find(short_form)
    while at >= 0:
        end = at + len(short_form)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return Span(at, end)
        at = text.find(short_form, end)
    return None


def measure(model: Any, corpus: Corpus) -> Measured:
    rows = corpus.records
    started = time.perf_counter()
    chosen: list[str] = []
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        found = model.choose_many([(r.text, r.span, r.senses) for r in part])
        chosen += [
            row.senses[max(range(len(cosines)), key=cosines.__getitem__)]
            for row, cosines in zip(part, found, strict=True)
        ]
    seconds = time.perf_counter() - started
    return Measured(
        _counts(rows, chosen),
        _counts(rows, majority(rows)),
        MEASURES,
        {PRIMARY: "always the acronym's commonest sense in these same rows"},
        seconds,
    )


def majority(rows: Sequence[Row]) -> list[str]:
    """Of each row's acronym the sense that is commonest in these very rows: an upper bound for majority."""
    senses: dict[str, Counter[str]] = {}
    for row in rows:
        senses.setdefault(row.short_form, Counter())[row.gold] += 1
    return [senses[row.short_form].most_common(1)[0][0] for row in rows]


def _counts(rows: Sequence[Row], chosen: Sequence[str]) -> Counts:
    """Columns: right, one."""
    return np.array([[sense == row.gold, 1] for row, sense in zip(rows, chosen, strict=True)], np.float64)
