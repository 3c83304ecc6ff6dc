"""Names of drug classes ("antibiotics", "beta blockers") among the words of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Self

from models.lexicon import NameLexicon
from models.tables import DATA, read_tsv

BUNDLED = DATA / "drug_classes.tsv"


class DrugClasses:
    """The names of a table, in singular and plural."""

    def __init__(self, names: Iterable[str]) -> None:
        singular = list(names)
        self._names = NameLexicon.of([*singular, *(n if n.endswith("s") else f"{n}s" for n in singular)])

    @classmethod
    def load(cls, path: Path = BUNDLED) -> Self:
        """Reads a table with the column `name`; else ValueError."""
        return cls(row[0] for row in read_tsv(path, ("name",)))

    def spans(self, words: Sequence[str]) -> dict[int, int]:
        """The position of the last word of each name to that of its first, in text order; none is a part of
        another one.
        """
        return {after - 1: first for first, after, _ in self._names.runs(words)}


@cache
def bundled_classes() -> DrugClasses:
    return DrugClasses.load()
