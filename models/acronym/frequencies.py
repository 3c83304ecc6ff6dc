"""How often a short form has each of its meanings in clinical texts, as words that stand for shares.

Counts in a corpus say it better, where a corpus has the short form; most short forms are in none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from models.acronym.surface_features import undotted
from models.tables import DATA, read_tsv

#: The file of a release, and the one beside this module, which was estimated for this project.
TABLE = "frequencies.tsv"
CLINICAL = DATA / "acronym_frequencies.tsv"
RARE = "rare"
#: What a word stands for, before the shares of a short form are made to add up to 1: usual is what a reader
#: expects without context, and at least about half of the uses.
WEIGHTS = {"usual": 1.0, "common": 0.3, "occasional": 0.07, RARE: 0.01}
#: Of a long form without a word beside others that have one.
UNRATED = WEIGHTS["common"]


class SenseFrequencies:
    """Estimated shares of the long forms of short forms; immutable."""

    def __init__(self, words: Mapping[tuple[str, str], str] | None = None) -> None:
        """`words`: short form and long form to one of WEIGHTS; ValueError for another word."""
        self.words = dict(words or {})
        if unknown := sorted(set(self.words.values()) - WEIGHTS.keys()):
            raise ValueError(f"{unknown[0]!r} is none of {', '.join(WEIGHTS)}")
        self._short_forms = {short for short, _ in self.words}

    @classmethod
    def load(cls, path: Path) -> SenseFrequencies:
        """From a table short_form, long_form, frequency; else ValueError."""
        rows = read_tsv(path, ("short_form", "long_form", "frequency"))
        return cls({(row[0], row[1]): row[2] for row in rows})

    def write(self, path: Path) -> None:
        """Writes the table that `load` reads."""
        rows = [f"{short}\t{form}\t{word}\n" for (short, form), word in sorted(self.words.items())]
        path.write_text("".join(["short_form\tlong_form\tfrequency\n", *rows]), encoding="utf-8")

    def rates(self, short_form: str) -> bool:
        """Whether anything is known of the short form."""
        return undotted(short_form) in self._short_forms

    def shares(self, short_form: str, long_forms: Sequence[str]) -> list[float]:
        """Of each of the long forms; they add up to 1, and are equal where nothing is known."""
        short = undotted(short_form)
        weights = [WEIGHTS.get(self.words.get((short, form), ""), UNRATED) for form in long_forms]
        total = sum(weights)
        return [weight / total for weight in weights]
