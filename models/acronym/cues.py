"""Cue words: what stands near a short form when it has one meaning and not another ("chest" beside CTA as
computed tomography angiography, "lungs" as clear to auscultation). One neighbouring word often decides, and
a mean vector of many words hardly shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from models.acronym.questions import undotted
from models.tables import DATA, read_tsv

#: The file of a release, and the table that was written for this project.
TABLE = "cues.tsv"
CLINICAL = DATA / "acronym_cues.tsv"
COLUMNS = ("short_form", "long_form", "cues")
SEPARATOR = "|"
#: What a cue counts by its distance in words; further away FAR.
NEAR, MIDDLE = (3, 1.0), (8, 0.67)
FAR = 0.47
#: What a cue of several words counts, in relation to one word.
PHRASE = 1.5
#: Maximum number of words of a cue.
_LONGEST = 3
#: Shorter words keep their s.
_LETTERS = 3
_WORD = re.compile(r"[A-Za-z0-9]+(?:['\u2019][a-z]+)?")
_UNCHANGED = ("ss", "us", "is")

#: The words of a cue.
_Cue = tuple[str, ...]


class CueWords:
    """The cue words of the long forms of short forms; several threads may use it at once."""

    def __init__(self, cues: Mapping[tuple[str, str], Sequence[str]] | None = None) -> None:
        """`cues`: of a short form and a long form; a cue of several long forms counts a share for each."""
        self.cues = dict(cues or {})
        self._long_forms: dict[str, list[str]] = {}
        for short, form in self.cues:
            self._long_forms.setdefault(short, []).append(form)
        self._tables: dict[str, dict[_Cue, list[str]]] = {}

    @classmethod
    def load(cls, path: Path) -> CueWords:
        """From a table short_form, long_form, cues, the last one with bars between them; else ValueError."""
        return cls({(row[0], row[1]): row[2].split(SEPARATOR) for row in read_tsv(path, COLUMNS)})

    def write(self, path: Path) -> None:
        """Writes the table that `load` reads."""
        rows = [f"{short}\t{form}\t{SEPARATOR.join(own)}\n" for (short, form), own in self.cues.items()]
        path.write_text("".join(["\t".join(COLUMNS), "\n", *rows]), encoding="utf-8")

    def scores(self, left: str, short_form: str, right: str, long_forms: Sequence[str]) -> list[float]:
        """The weights of the cues of each long form added up, in the text on both sides of the short form."""
        forms = self._table(undotted(short_form))
        if not forms:
            return [0.0] * len(long_forms)
        weights: dict[_Cue, float] = {}
        for distance, cue in (*_before(words_of(left)), *_behind(words_of(right))):
            if cue in forms:
                weights[cue] = max(weights.get(cue, 0.0), _weight(distance, len(cue)))
        sums: dict[str, float] = {}
        for cue, weight in weights.items():
            for name in forms[cue]:
                sums[name] = sums.get(name, 0.0) + weight / len(forms[cue])
        return [sums.get(_name(form), 0.0) for form in long_forms]

    def _table(self, short: str) -> dict[_Cue, list[str]]:
        """The long forms of each cue of a short form, kept when it was asked: few ever are."""
        if short not in self._tables:
            table: dict[_Cue, list[str]] = {}
            for form in self._long_forms.get(short, ()):
                for cue in {words_of(text) for text in self.cues[short, form]} - {()}:
                    table.setdefault(cue, []).append(_name(form))
            if not table:
                return table
            self._tables[short] = table
        return self._tables[short]


def _before(words: _Cue) -> Iterator[tuple[int, _Cue]]:
    """The runs of words in front of the short form, each with its distance; 1 is beside it."""
    for end in range(len(words), 0, -1):
        for start in range(max(0, end - _LONGEST), end):
            yield len(words) - end + 1, words[start:end]


def _behind(words: _Cue) -> Iterator[tuple[int, _Cue]]:
    """The runs of words behind the short form."""
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + _LONGEST) + 1):
            yield start + 1, words[start:end]


def _weight(distance: int, n_words: int) -> float:
    near = next((weight for reach, weight in (NEAR, MIDDLE) if distance <= reach), FAR)
    return near * (PHRASE if n_words > 1 else 1.0)


def words_of(text: str) -> _Cue:
    """The words as they are compared: abbreviations as written, others small and in the singular."""
    return tuple(map(_singular, _WORD.findall(text)))


def _singular(word: str) -> str:
    if word.isupper() and len(word) > 1:
        return word
    word = word.lower()
    return (
        word[:-1] if len(word) > _LETTERS and word.endswith("s") and not word.endswith(_UNCHANGED) else word
    )


def _name(long_form: str) -> str:
    """Equal for spellings that differ in case, hyphens and spaces."""
    return "".join(re.findall(r"[^\W_]+", long_form.lower()))
