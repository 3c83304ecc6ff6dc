"""The intent of a message: its asking clause, and the data of it that the rules and features of edits use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from models.summarization.editing.openings import CUES, listed
from models.summarization.editing.slots import objects
from models.summarization.extraction.extractor import ExtractedAnswer, Extraction
from models.summarization.extraction.focus import Focus
from models.summarization.extraction.key_words import FUNCTION_WORDS
from models.summarization.extraction.message import Message
from models.summarization.medical_entities import word_keys
from models.types import Span

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NEGATION = re.compile(
    r"\b(?:no|not|never|none|nor|nothing|without|w/o|cannot|non|"
    r"(?:do|does|did|is|are|was|were|ca|wo|would|should|could|have|has|had|ai)nt)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
PRONOUN = re.compile(r"\b(?:it|this|that|these|those|them|they|one)\b", re.IGNORECASE)
_YES_NO = re.compile(
    r"(?:is|are|am|was|were|do|does|did|can|could|should|will|would|may|might|has|have|had)\b", re.IGNORECASE
)
#: Words of asking and thanking, which may be left out without loss.
ASKING_WORDS = frozenset(
    re.findall(
        r"\w+",
        "thank thanks hi hello please kindly sir madam dear regard anyone anybody someone somebody something "
        "anything everything someone one tell advise suggest recommend give send find look looking search "
        "want need wish like know learn hear wonder wondering interested hope hoping trying question answer "
        "reply respond available possible best good better great other kind type sort way thing just also "
        "really still even ever now more much many most some any such there here go going make new own "
        "help appreciate appreciated let us option options exist regarding related relating guidance assist "
        "assistance support problem condition disease disorder illness issue case suffer suffered suffering "
        "totally completely properly currently recently pill tablet capsule product deal mail email visit "
        "greatly highly much apprec grateful indepth depth detail kindness soon asap quick quickly person "
        "rid",
    )
)
#: Words for the person who asks, and for the patient.
_PERSONAL = frozenset(
    re.findall(
        r"\w+",
        "i my me mine we our us he him his she her year old years yr month months age aged son daughter "
        "mother father husband wife mom mum dad sister brother friend boy girl man woman name patient",
    )
)
#: Number of content words by which a phrase behind "treatment for" is identified.
_MOST_OBJECT = 2
_UNASKED = FUNCTION_WORDS | ASKING_WORDS | _PERSONAL


class Intent(NamedTuple):
    """A message with the clause that was chosen from it and what the clause asks."""

    message: Message
    kept: ExtractedAnswer
    names: Sequence[Focus]
    """names that may be the topic of the message"""
    probabilities: Sequence[float]
    """of each of them"""
    kinds: Sequence[float]
    """the probability of each of KINDS"""
    clause: str
    content: frozenset[str]
    """content words of the clause, as `word_keys`"""
    lead: frozenset[str]
    """content words of the sentence in front, if it is a part of the answer"""
    drugs: Sequence[str]
    """medicines named in the clause, or in the sentence in front"""
    terms: Sequence[str]
    """other names of the terminology in the clause"""
    objects: Sequence[frozenset[str]]
    """the first two content words behind each "treatment for" and the like"""
    nouns: tuple[str, ...]
    """see `openings.listed`"""

    @property
    def asks(self) -> bool:
        """Whether the clause is a question with content words, unlike "Can you help us?"."""
        return self.kept.chosen.asks and bool(self.content)

    @property
    def question(self) -> str:
        """The clause as shown, without the sentence in front."""
        return self.clause if self.kept.chosen.lead else self.kept.chosen.text

    @property
    def yes_no(self) -> bool:
        return _YES_NO.match(self.question) is not None

    @property
    def numbers(self) -> frozenset[str]:
        return frozenset(NUMBER.findall(self.clause))

    @property
    def negated(self) -> bool:
        return NEGATION.search(self.clause) is not None


def intent_of(found: Extraction, kept: ExtractedAnswer, kinds: Sequence[float]) -> Intent:
    """The intent of a message; `kept` is the answer extracted from it, `kinds` are the probabilities of
    KINDS.
    """
    message, chosen = found.message, kept.chosen
    clause = message.text[chosen.part.start : chosen.part.end]
    drugs, terms = (_inside(message, chosen.part, spans) for spans in (message.drugs, message.terms))
    lead = "" if chosen.lead is None else chosen.lead.text
    if chosen.lead:
        drugs += _inside(message, chosen.lead.part, message.drugs)
    return Intent(
        message,
        kept,
        found.names,
        found.probabilities,
        kinds,
        clause,
        content(clause),
        content(lead),
        drugs,
        terms,
        [own for s in objects(message, chosen) if (own := _object(message.text[s.start : s.end]))],
        listed(f"{lead} {clause}"),
    )


def content(text: str) -> frozenset[str]:
    """The content words of a text: without words of asking, and without words for persons."""
    return frozenset(word_keys(text)) - _UNASKED


def _object(text: str) -> frozenset[str]:
    """The first two content words of a text."""
    words = [w for w in word_keys(text) if w not in _UNASKED and not any(c.fullmatch(w) for c in CUES)]
    return frozenset(words[:_MOST_OBJECT])


def _inside(message: Message, part: Span, spans: Sequence[Span]) -> list[str]:
    return [message.text[s.start : s.end] for s in spans if part.start <= s.start and s.end <= part.end]
