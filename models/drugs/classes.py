"""Names of drug classes ("antibiotics", "beta blockers") among the words of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Self

from models.tables import read_tsv
from models.text import word_texts

BUNDLED = Path(__file__).with_name("classes.tsv")


class DrugClasses:
    """The names of a table, in singular and plural."""

    def __init__(self, names: Iterable[str]) -> None:
        found = {tuple(w.lower() for w in word_texts(name)) for name in names}
        self._by_last: dict[str, list[tuple[str, ...]]] = {}
        for words in sorted(found | {_plural(words) for words in found}, key=len, reverse=True):
            self._by_last.setdefault(words[-1], []).append(words)

    @classmethod
    def load(cls, path: Path = BUNDLED) -> Self:
        """Reads a table with the column `name`; else ValueError."""
        return cls(row[0] for row in read_tsv(path, ("name",)))

    def spans(self, words: Sequence[str]) -> dict[int, int]:
        """The position of the last word of each name to that of its first, in text order; none is a part of
        another one.
        """
        lower = [word.lower() for word in words]
        found: dict[int, int] = {}
        free = len(lower)
        for last in reversed(range(len(lower))):
            names = self._by_last.get(lower[last], ()) if last < free else ()
            firsts = (last + 1 - len(n) for n in names if tuple(lower[: last + 1][-len(n) :]) == n)
            if (first := next(firsts, None)) is not None:
                found[last] = free = first
        return dict(sorted(found.items()))


@cache
def bundled_classes() -> DrugClasses:
    return DrugClasses.load()


def _plural(words: tuple[str, ...]) -> tuple[str, ...]:
    last = words[-1]
    return (*words[:-1], last if last.endswith("s") else f"{last}s")
