"""How often a short form has each of its meanings in clinical texts: words that stand for shares and, where a
corpus has the short form, counts, which say it better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from models.acronym.questions import undotted
from models.tables import DATA, read_tsv

#: The files of a release, and the table of words, which was estimated for this project.
TABLE, COUNTS = "frequencies.tsv", "counts.tsv"
CLINICAL = DATA / "acronym_frequencies.tsv"
RARE = "rare"
#: What a word stands for, before the shares of a short form are made to add up to 1: usual is what a reader
#: expects without context, and at least about half of the uses.
WEIGHTS = {"usual": 1.0, "common": 0.3, "occasional": 0.07, RARE: 0.01}
#: Of a long form without a word beside others that have one.
UNRATED = WEIGHTS["common"]
#: Added to the count of every long form in a corpus, on average over those of a short form: more where the
#: long form is estimated to be frequent.
SMOOTHING = 0.5
_COUNTS = ("short_form", "long_form", "source", "rows")


class SenseFrequencies:
    """Shares of the long forms of short forms; immutable."""

    def __init__(
        self,
        words: Mapping[tuple[str, str], str] | None = None,
        counts: Mapping[str, Mapping[tuple[str, str], int]] | None = None,
    ) -> None:
        """`words`: short form and long form to one of WEIGHTS; ValueError for another word. `counts`: source
        to the rows that it has of a short form and a long form.
        """
        self.words = dict(words or {})
        if unknown := sorted(set(self.words.values()) - WEIGHTS.keys()):
            raise ValueError(f"{unknown[0]!r} is none of {', '.join(WEIGHTS)}")
        self.counts = {source: dict(rows) for source, rows in (counts or {}).items()}
        self._counted = {source: {short for short, _ in rows} for source, rows in self.counts.items()}

    @classmethod
    def load(cls, path: Path, counted: Path | None = None) -> SenseFrequencies:
        """From a table short_form, long_form, frequency, and one of counts; else ValueError."""
        rows = read_tsv(path, ("short_form", "long_form", "frequency"))
        counts: dict[str, dict[tuple[str, str], int]] = {}
        for short, form, source, n in read_tsv(counted, _COUNTS) if counted else ():
            counts.setdefault(source, {})[short, form] = int(n)
        return cls({(row[0], row[1]): row[2] for row in rows}, counts)

    def write(self, path: Path, counted: Path) -> None:
        """Writes the tables that `load` reads."""
        rows = [f"{short}\t{form}\t{word}\n" for (short, form), word in sorted(self.words.items())]
        path.write_text("".join(["short_form\tlong_form\tfrequency\n", *rows]), encoding="utf-8")
        counts = [(*sense, source, str(n)) for source, own in self.counts.items() for sense, n in own.items()]
        lines = ["\t".join(row) for row in (_COUNTS, *sorted(counts))]
        counted.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def shares(self, short_form: str, long_forms: Sequence[str]) -> list[float]:
        """Of each of the long forms, the mean over the sources that count the short form, else estimated;
        they add up to 1, and are equal where nothing is known.
        """
        short = undotted(short_form)
        weights = [WEIGHTS.get(self.words.get((short, form), ""), UNRATED) for form in long_forms]
        expected = [weight / sum(weights) for weight in weights]
        sources = [rows for source, rows in self.counts.items() if short in self._counted[source]]
        smoothing = SMOOTHING * len(long_forms)
        by_source = []
        for source in sources:
            rows = [source.get((short, form), 0) for form in long_forms]
            by_source.append(
                [(n + smoothing * e) / (sum(rows) + smoothing) for n, e in zip(rows, expected, strict=True)]
            )
        return [sum(own) / len(sources) for own in zip(*by_source, strict=True)] if sources else expected
