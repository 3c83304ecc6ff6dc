"""The sentences of a text that may be its short question."""

from __future__ import annotations

import re

from models.rules.sentences import whole_sentences
from models.types import Span

#: Not "Was in hospital", "Might just be nerves" or "Can't sleep", statements whose subject was left out, not
#: "When she stands up, she faints", "Which is why I ask" and "What a relief".
_QUESTION_START = re.compile(
    r"^(?!(?:when|where) (?:i|he|she|it|they|we|you|my|his|her|our|their|the)\b)"
    r"(?!(?:which|who) (?:i|we|he|she|they|it|is (?:why|what|how|where|when)|was|were|made|means|had)\b)"
    r"(?!what (?:an?|i|we|my)\b|how i\b|can['\u2019]t\b)"
    r"(?!(?:am|was|were|have|had|has) (?:in|at|on|to|been|had|an?|diagnosed|told|given|put|prescribed|"
    r"taking|having|trying|recently|just|feeling|getting)\b)"
    r"(?!(?:might|may|could|would|should) (?:just|be|have|also|well|even|like|love|really|still|only|need|"
    r"want|appreciate|prefer|rather|never|add|say)\b)"
    r"(?:(?:at|in|for|by|with) (?:what|which|how)|who|whom|whose|what|when|where|why|which|how|is|are|am|"
    r"was|were|do|does|did|can|could|should|shall|will|would|may|might|has|have|had|any(?:one|body)?)\b",
    re.IGNORECASE,
)
#: The end of a sentence with no space behind it; addresses of the web and of mail have small letters there.
_UNSPACED = re.compile(r"(?<=[^\W\d_]{2})(?:\s?[?!][?!.]{0,9}|\.{2,9}|\.(?=[A-Z][a-z]*[ ,]))(?=[^\W\d_])")
_FIELD = re.compile(r"^\s*(?:subject|message|question|q|re)\s*:\s*", re.IGNORECASE)


def candidate_sentences(text: str) -> list[Span]:
    """The questions among the sentences of a text, or all sentences where none is a question; without the
    field names of a contact form. Never empty.
    """
    kept = all_sentences(text)
    return [s for s in kept if is_question(text[s.start : s.end])] or kept


def all_sentences(text: str) -> list[Span]:
    """The sentences of a text without the field names of a contact form. Never empty."""
    spans = (_without_field(text, s) for s in whole_sentences(text))
    return [s for s in spans if s is not None] or [Span(0, len(text))]


def split_sentences(text: str) -> list[Span]:
    """`all_sentences`, divided also where a space is missing: "Is it safe?I take". Never empty."""
    spans = []
    for sentence in all_sentences(text):
        start = sentence.start
        for mark in _UNSPACED.finditer(text, sentence.start, sentence.end):
            spans.append(Span(start, mark.end()))
            start = mark.end()
        spans.append(Span(start, sentence.end))
    return spans


def is_question(sentence: str) -> bool:
    """Whether a sentence ends with a question mark or starts with a word that starts questions."""
    return "?" in end_marks(sentence) or _QUESTION_START.match(sentence) is not None


def end_marks(sentence: str) -> str:
    """What stands behind the last word of a sentence: '?"', "?!", or a mark and an emoji."""
    last = next((i for i in range(len(sentence) - 1, -1, -1) if sentence[i].isalnum()), -1)
    return sentence[last + 1 :]


def _without_field(text: str, sentence: Span) -> Span | None:
    field = _FIELD.match(text[sentence.start : sentence.end])
    start = sentence.start + (field.end() if field else 0)
    return Span(start, sentence.end) if start < sentence.end else None
