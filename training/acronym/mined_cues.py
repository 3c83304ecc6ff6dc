"""Cue words that rows with a known meaning show: words that stand near an acronym in one meaning far more
often than in any other. A release has them beside the written ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from models.acronym.cues import CueWords, words_of
from models.acronym.questions import undotted
from training.acronym.data import questions
from training.common.long_forms import key
from training.evaluation.acronym import Row

#: Rows of a meaning that a word must be in, by how many times the share of every other meaning its share must
#: be, and how many words a meaning gets.
LEAST, RATIO, MOST = 2, 5.0, 20
#: A word in a larger share of all rows is no cue: "patient" and "history" mislead in texts of other writers.
GENERAL = 0.02
#: Of a word: shorter ones are mostly units and names of columns.
LETTERS = 3
#: Rows with the word and without that a share begins with.
_WITH, _WITHOUT = 0.1, 0.4

_Sense = tuple[str, str]


def mined(rows: Sequence[Row], dictionary: Mapping[str, Sequence[str]]) -> dict[_Sense, list[str]]:
    """The words of each short form and long form in the dictionary's spelling, the clearest first; none where
    the rows have no other meaning of the short form.
    """
    senses = [_spelled(row, dictionary) for row in rows]
    near = [_near(q.left, q.right) for q in questions(rows)]
    general = Counter(word for words in near for word in words)
    total = Counter(s for s in senses if s)
    counts: dict[_Sense, Counter[str]] = {sense: Counter() for sense in total}
    for sense, words in zip(senses, near, strict=True):
        if sense:
            counts[sense].update(w for w in words if general[w] <= GENERAL * len(rows))
    shares = {s: {w: _share(n, total[s]) for w, n in own.items()} for s, own in counts.items()}
    found = {}
    for sense, own in counts.items():
        others = [s for s in total if s[0] == sense[0] and s != sense]
        clear = []
        for word, n in own.items():
            usual = max((shares[s].get(word, _share(0, total[s])) for s in others), default=1.0)
            if n >= LEAST and shares[sense][word] >= RATIO * usual:
                clear.append((-n * math.log(shares[sense][word] / usual), word))
        found[sense] = [word for _, word in sorted(clear)[:MOST]]
    return found


def extended(written: CueWords, more: Mapping[_Sense, Sequence[str]]) -> CueWords:
    """The cues with further ones behind them."""
    cues = {sense: list(own) for sense, own in written.cues.items()}
    for sense, words in more.items():
        own = cues.get(sense, [])
        if added := [w for w in words if w not in own]:
            cues[sense] = [*own, *added]
    return CueWords(cues)


def _spelled(row: Row, dictionary: Mapping[str, Sequence[str]]) -> _Sense | None:
    short = undotted(row.short_form)
    form = next((f for f in dictionary.get(short, ()) if key(f) == key(row.gold)), None)
    return None if form is None else (short, form)


def _near(left: str, right: str) -> set[str]:
    # No years, doses and marks of what was taken out of a note.
    return {w for w in (*words_of(left), *words_of(right)) if w.isalpha() and len(w) >= LETTERS}


def _share(n: int, rows: int) -> float:
    return (n + _WITH) / (rows + _WITH + _WITHOUT)
