"""The features by which a linear ranker chooses what a message is about among the candidates of focus.py."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from models.summarization.extraction.focus import Focus
from models.summarization.extraction.message import Message
from models.summarization.sentence_selection import split_sentences
from models.types import Span

#: The features of a candidate, in the order of `features`.
FEATURES = (
    "drug",
    "term",
    "phrase",
    "cue",
    "subject",
    "capitals",
    "key",
    "sources",
    "mentions",
    "first_place",
    "last_place",
    "one_word",
    "words",
    "letters",
    "cosine",
    "candidates",
    "in_longer",
    "has_shorter",
    "asked",
    "from_question",
    "form",
    "key_most",
    "key_least",
)
SOURCES = FEATURES[:7]
#: The way that knows a name by its probability alone, not by what it is.
KEY = "key"
#: Words of contact forms in a subject line.
_FORM = re.compile(
    r"\b(?:clinicaltrials|questions?|general|information|inquiry|request|customer|service|re|help|advice|"
    r"looking|query|re|rx|urgent|please|about)\b",
    re.IGNORECASE,
)


def features(message: Message, found: Sequence[Focus], cosines: Sequence[float]) -> list[list[float]]:
    """FEATURES of each candidate; `cosines` are those of the candidates to the whole text."""
    text = message.text
    lower, names = text.lower(), [f.text.lower() for f in found]
    length = max(1, len(text))
    asking = _asking(text)
    rows = []
    for focus, name, cosine in zip(found, names, cosines, strict=True):
        others = [n for n in names if n != name]
        n_words = len(name.split())
        rows.append(
            [
                *(float(s in focus.sources) for s in SOURCES),
                float(len(focus.sources)),
                float(min(lower.count(name), 4)),
                max(0, lower.find(name)) / length,
                max(0, lower.rfind(name)) / length,
                float(n_words == 1),
                float(n_words),
                len(name) / 20,
                cosine,
                math.log1p(len(found)),
                float(any(name in other for other in others)),
                float(any(other in name for other in others)),
                float(any(name in lower[s.start : s.end] for s in asking)),
                min((_distance(focus.span, s) for s in asking), default=length) / length,
                float(_FORM.search(name) is not None),
                *_key_features(message, focus),
            ]
        )
    return rows


def _key_features(message: Message, focus: Focus) -> list[float]:
    """The probabilities of its most and of its least probable word that is judged."""
    judged = [p for p in message.key_probabilities(focus.span) if p]
    return [max(judged, default=0.0), min(judged, default=0.0)]


def _asking(text: str) -> list[Span]:
    """The sentences that end with a question mark."""
    return [s for s in split_sentences(text) if text[s.start : s.end].rstrip().endswith("?")]


def _distance(name: Span, sentence: Span) -> int:
    """Code points from the first mention of a name to a sentence; 0 within it."""
    return max(0, sentence.start - name.end, name.start - sentence.end)
