"""The kind of question that a summary asks, as the target of the decoder's head, and the openings of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from models.summarization.editing.openings import KINDS, OPENINGS
from models.summarization.question_cues import SLOT
from training.summarization.editing.gold_kinds import gold_kinds

#: The kinds of the closed set, and that of a summary which asks none of them or several.
HEAD_KINDS = len(KINDS) + 1
#: Words of an opening, and how many summaries of a kind must have it.
WORDS, LEAST = 4, 5


def kind_of(summary: str) -> int:
    """The one kind that a summary asks, else the last."""
    asked = gold_kinds(summary)
    return asked.index(True) if sum(asked) == 1 else len(KINDS)


def openings_of(summaries: Iterable[str]) -> list[list[str]]:
    """The openings of each kind: that of the closed set up to its slot, and the first WORDS words that at
    least LEAST summaries of the kind begin with; none of the last kind.
    """
    begun: list[Counter[str]] = [Counter() for _ in range(HEAD_KINDS)]
    for summary in summaries:
        words = summary.lower().split()
        if len(words) > WORDS:
            begun[kind_of(summary)][" ".join(words[:WORDS])] += 1
    closed = [o.question.partition(SLOT)[0].strip().lower() for o in OPENINGS]
    found = [sorted(text for text, n in own.items() if n >= LEAST) for own in begun]
    return [[*dict.fromkeys([first, *own])] for first, own in zip(closed, found, strict=False)] + [[]]
