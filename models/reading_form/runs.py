"""Runs that no writer means: blanks, a word, marks of one kind, and characters without any blank.

Patterns that try each place of a run again need quadratic time, so only its ends are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from models.reading_form.edits import Edit

_RUN = re.compile(r"\s{33,}|(?<!\w)\w{129,}|([^\w\s])\1{64,}")
#: Blanks beside single ones, and characters without a blank, in a text that has a run.
_SHORTEST_BLANKS, _SHORTEST_MARKS = 31, 65
#: Of what `_RUN` has left.
_WITHOUT_BLANK = re.compile(r"(?<!\S)\S{1025,}")
#: Characters at both ends of a run that are read.
_ENDS = 16


def has_long_run(text: str) -> bool:
    """Whether `run_edits` has any; of texts with short words and few blanks that is plain."""
    words = text.split()
    blanks = len(text) - sum(map(len, words)) - len(words)
    if blanks < _SHORTEST_BLANKS and max(map(len, words), default=0) < _SHORTEST_MARKS:
        return False
    return bool(_RUN.search(text) or _WITHOUT_BLANK.search(text))


def run_edits(text: str) -> Iterator[Edit]:
    """An ellipsis in the middle of runs; nothing in that of blanks."""
    pattern = _RUN if _RUN.search(text) else _WITHOUT_BLANK
    for run in pattern.finditer(text):
        yield Edit(run.start() + _ENDS, run.end() - _ENDS, "" if run.group().isspace() else "\u2026")
