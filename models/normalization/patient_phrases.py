"""Patients' own words for preferred terms, searched beside the terms: "can't shut my eyes" is no term of any
terminology, but it stood in a training post and somebody coded it.

A phrase counts only for a mention that is very like it. What a terminology says of a concept outlives the
posts that a release was trained on; a phrase is evidence for its own wording.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.terminology import Term

HEADER = ["phrase", "pt"]


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases, the preferred term of each, and their unit vectors by S_isolated, (phrases, dimension)."""

    texts: tuple[str, ...]
    pts: tuple[str, ...]
    vectors: Tensor
    at_least: float
    """cosine from which a phrase counts"""

    def within(self, terms: Iterable[Term]) -> Phrases:
        """Those whose preferred term is one of these terms', case ignored, in the terms' spelling."""
        known = {t.pt.lower(): t.pt for t in terms}
        rows = [i for i, pt in enumerate(self.pts) if pt.lower() in known]
        return Phrases(
            tuple(self.texts[i] for i in rows),
            tuple(known[self.pts[i].lower()] for i in rows),
            self.vectors[torch.tensor(rows, dtype=torch.long)],
            self.at_least,
        )


def read(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Phrases and their preferred terms; raises ValueError with the line."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    if not rows or rows[0] != HEADER:
        raise ValueError(f"{path.name}: the header is not {' '.join(HEADER)}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(HEADER) or not all(row):
            raise ValueError(f"{path.name}, line {number}: a phrase and a preferred term are wanted")
    return tuple(row[0] for row in rows[1:]), tuple(row[1] for row in rows[1:])


def write(path: Path, texts: Sequence[str], pts: Sequence[str]) -> None:
    lines = ["\t".join(HEADER), *(f"{text}\t{pt}" for text, pt in zip(texts, pts, strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
