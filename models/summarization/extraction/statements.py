"""The statement that a chosen question refers to: "Why is this so?" says nothing without it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from models.summarization.extraction.answer_candidates import (
    CUES,
    LEAST_LEAD,
    Candidate,
    content,
    joined,
    key_sums,
    within,
)
from models.summarization.extraction.key_words import PEAK
from models.summarization.extraction.message import Message
from models.summarization.sentence_selection import is_question

#: Most words of content of a question that refers to a statement, with a pronoun and without one.
_REFERS, _BARE = 5, 1
#: The sentences in front of it that may be the statement, and the most words of both.
_BACK, _MOST = 3, 45


def explained(message: Message, found: Sequence[Candidate], chosen: Candidate) -> Candidate:
    """The chosen question with a statement in front where it refers to one: "I have ulcer pain when I take
    Tylenol. Why is this so?" Of the last sentences with a probable key word that is the one with most of
    them. The candidate itself where it names what it asks about, or no sentence has such a word.
    """
    if not _refers(message, chosen):
        return chosen
    before = [c for c in found if c.lead is None and c.sentence.end <= chosen.sentence.start]
    stated = [c for c in reversed(before[-_BACK:]) if _is_statement(message, c, chosen)]
    best = max(stated, key=lambda c: sum(_keys(message, c)), default=None)
    return joined(best, chosen) if best else chosen


def _refers(message: Message, chosen: Candidate) -> bool:
    """Whether what asks has neither a name nor many words of content."""
    named = any(within(chosen.sentence, spans) for spans in (message.terms, message.drugs))
    refers = CUES["pronoun"].search(chosen.text) or not is_question(chosen.text)
    return chosen.asks and not named and len(content(chosen.text)) <= (_REFERS if refers else _BARE)


def _is_statement(message: Message, one: Candidate, question: Candidate) -> bool:
    """Whether a sentence has a probable key word and both are short enough."""
    words = len(one.text.split())
    short = LEAST_LEAD <= words <= _MOST - len(question.text.split())
    key = max(_keys(message, one), default=0.0)
    return short and not one.asks and key >= PEAK and bool(content(one.text))


def _keys(message: Message, one: Candidate) -> Collection[float]:
    """How probable it is that the short question has them, of the words of a candidate."""
    return key_sums(message, [one.part]).values()
