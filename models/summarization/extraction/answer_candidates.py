"""The answers that a message offers, the asking clause of each sentence, and their features."""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from models.summarization.extraction.clause_of_sentence import LONG, asking_clause, asks_indirectly, requests
from models.summarization.extraction.focus import Focus
from models.summarization.extraction.key_words import FUNCTION_WORDS
from models.summarization.extraction.message import Message, without_masks
from models.summarization.extraction.question_form import as_question
from models.summarization.medical_entities import word_keys
from models.summarization.sentence_selection import end_marks, is_question
from models.summarization.unasked import is_courtesy, is_not_asked
from models.types import Span

_PATTERNS = {
    "please": r"\b(?:please|kindly)\b",
    "wants_to_know": r"\bi (?:would|want|need|wish)|i['\u2019]d (?:like|be (?:glad|grateful|thankful))|"
    r"\blike to know|want to know|wonder",
    "inverted": r"\b(?:can|could|is|are|does|do|will|should|would|may) "
    r"(?:it|this|that|they|he|she|i|my|you|we|there)\b",
    "question_word": r"\b(?:what|which|how|why|where|when|who)\b",
    "politeness": r"\b(?:thank|thanks|hello|hi|dear)\b",
    "asks_for_advice": r"\b(?:help|advise|advice|information|info|know|tell|explain|recommend|suggest)\b",
    "kind": r"\b(?:cause|side effect|safe|treat|cure|test|dose|interact)",
    "seeks": r"\b(?:look(?:ing)? for|find|search\w*|hop(?:e|ing) to|interested in|curious|concern\w*)\b",
    "pronoun": r"\b(?:it|this|that|these|those|them|they|he|she|one)\b",
}
CUES = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()}
#: The features of a candidate, in the order of `features`.
FEATURES = (
    "cosine",
    "place",
    "first",
    "last",
    "only",
    "question_mark",
    "question",
    "log_words",
    "short",
    "long",
    *_PATTERNS,
    "questions_before",
    "questions_after",
    "terms",
    "drug",
    "pronoun_without_name",
    "no_content",
    "share_repeated",
    "words_repeated",
    "capitals",
    "no_mark",
    "names_focus",
    "no_focus",
    "title",
    "only_help",
    "lead_statement",
    "lead_question",
    "lead_words",
    "lead_names",
    "lead_names_focus",
    "short_behind_lead",
    "pronoun_behind_lead",
    "lead_lost",
    "key_most",
    "key_sum",
    "key_share",
    "lead_key_gain",
)
_NO_BREAKS = {ord("\n"): " ", ord("\r"): " "}
_SHORT = 4
_LEAST_LETTERS = 3
#: Words of a sentence in front of another, and of both.
LEAST_LEAD, _MOST_JOINED = 3, 20
#: Words of content of a request, and most words of all.
_LEAST_REQUESTED, _MOST_REQUESTED = 2, 2 * LONG
#: Maximum number of words of a first sentence that may be a title, if it does not ask.
_TITLE = 6
#: Words of a sentence that asks for nothing in particular: "Any help would be much appreciated".
_HELP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "help advice advise suggestion idea thought information info appreciate appreciated tell know "
        "give thank anyone anybody anything something reply answer respond email mail contact soon "
        "possible assist assistance need want like much would could can greatly please kindly there hear "
        "opinion question new work problem hope hoping looking forward look any one other someone suggest "
        "input guidance recommend",
    )
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer."""

    sentence: Span
    part: Span
    """what is kept of the sentence; both are spans of the whole text"""
    text: str
    """as it is shown"""
    asks: bool
    """whether the part is a question, direct or indirect"""
    focus: Focus | None
    """what the text is about, if the part does not name it"""
    lead: Candidate | None = None
    """the sentence in front that is a part of the answer: "It tastes of metal. Is it the pill?" """


class _CandidateWords(NamedTuple):
    """The words of a candidate's sentence, or from its part on where another sentence is in front."""

    text: str
    bag: set[str]
    n_words: int
    cues: list[float]
    """1 for each of _PATTERNS that is found; the last one is that of a pronoun"""
    terms: int
    drugs: int

    @property
    def has_mark(self) -> bool:
        return self.text.rstrip().endswith("?")


def candidate(text: str, sentence: Span, focus: Focus | None) -> Candidate:
    """The candidate that a sentence gives; it has the focus unless the part has all of its words."""
    whole = text[sentence.start : sentence.end].translate(_NO_BREAKS)
    clause = asking_clause(whole)
    part = Span(sentence.start + clause.start, sentence.start + clause.end)
    shown = as_question(whole, clause)
    if whole != text[sentence.start : sentence.end]:
        shown = " ".join(shown.split())
    lacks = focus is not None and not names(shown, focus)
    asks = is_question(shown) or asks_indirectly(whole)
    if len(shown.split()) <= _MOST_REQUESTED and len(content(shown)) >= _LEAST_REQUESTED:
        asks = asks or requests(whole)
    return Candidate(sentence, part, shown, asks, focus if lacks else None)


def with_leads(found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of a text, also a short question behind another one or a short statement."""
    pairs = [joined(a, b) for a, b in itertools.pairwise(found) if b.asks and _may_join(a, b)]
    return [*found, *pairs]


def joined(lead: Candidate, question: Candidate) -> Candidate:
    """The candidate of two neighbouring sentences."""
    end = "." if set(".?!").isdisjoint(end_marks(lead.text)) else ""
    text = f"{lead.text.rstrip(' ,;:')}{end} {question.text}"
    both = lead.focus is not None and question.focus is not None
    sentence = Span(lead.sentence.start, question.sentence.end)
    return Candidate(sentence, question.part, text, True, question.focus if both else None, lead)


def _may_join(lead: Candidate, question: Candidate) -> bool:
    """Whether both are short, and at most half of the first is said again by the second."""
    if is_not_asked(lead.text):
        return False
    own, other = len(lead.text.split()), len(question.text.split())
    said, asked = ({w for w in word_keys(c.text) if w not in FUNCTION_WORDS} for c in (lead, question))
    return own >= LEAST_LEAD and own + other <= _MOST_JOINED and 2 * len(said & asked) <= len(said)


def content(text: str) -> set[str]:
    """The words of a text that say what is asked."""
    return set(word_keys(text)) - FUNCTION_WORDS - _HELP_WORDS - {"should", "shall", "may", "might", "must"}


def names(text: str, focus: Focus) -> bool:
    """Whether a text has every word of the focus."""
    return set(word_keys(focus.text)) <= set(word_keys(text))


def has_content(found: Candidate, text: str) -> bool:
    """Whether a candidate says anything: of up to three words "Why?", "any ideas?" and "[NAME]" do not; three
    words need one that is no function word, two need two. Behind another sentence one is enough: "It tastes
    of metal. Normal?"
    """
    own = without_masks(text[found.part.start : found.part.end])
    if is_courtesy(own) or is_not_asked(text[found.sentence.start : found.sentence.end]):
        return False
    content = [w for w in word_keys(own) if w not in FUNCTION_WORDS and w not in ("thank", "hi", "hello")]
    n_words = len(own.split())
    if found.lead and not _HELP_WORDS.issuperset(content):
        return True
    return n_words >= _SHORT or len(content) >= _SHORT - n_words


def features(
    message: Message, found: Sequence[Candidate], cosines: Sequence[float], focus: Focus | None
) -> list[list[float]]:
    """FEATURES of each candidate of a text; `cosines` are those of the candidates to the whole text, and
    `focus` is what the text is about.
    """
    said = [_words_of(message, one) for one in found]
    alone = [i for i, c in enumerate(found) if c.lead is None]
    marks = list(itertools.accumulate((said[i].has_mark for i in alone), initial=0))
    counts = Counter(w for i in alone for w in said[i].bag)
    places = {found[i].part.start: place for place, i in enumerate(alone)}
    key_total = sum(key_sums(message, [Span(0, len(message.text))]).values()) if message.text else 0.0
    rows = []
    for i, (one, own) in enumerate(zip(found, said, strict=True)):
        place = places[one.part.start]
        rows.append(
            [
                cosines[i],
                *_place_features(place, len(alone)),
                float(own.has_mark),
                float(one.asks),
                math.log(max(1, own.n_words)),
                float(own.n_words < _SHORT),
                float(own.n_words > LONG),
                *own.cues,
                float(marks[place]),
                float(marks[-1] - marks[place + 1]),
                *_content_features(own, counts),
                float(focus is not None and one.focus is None),
                float(focus is None),
                float(place == 0 and own.n_words <= _TITLE and not own.has_mark and not own.cues[0]),
                float(own.bag <= _HELP_WORDS),
                *_lead_features(message, one, focus, own.n_words, own.cues[-1]),
                *_key_features(message, one, key_total),
            ]
        )
    return rows


def _words_of(message: Message, one: Candidate) -> _CandidateWords:
    span = Span(one.part.start, max(one.part.end, one.sentence.end)) if one.lead else one.sentence
    text = message.text[span.start : span.end]
    cues = [float(cue.search(text) is not None) for cue in CUES.values()]
    terms, drugs = (within(span, spans) for spans in (message.terms, message.drugs))
    return _CandidateWords(text, _bag(text), len(text.split()), cues, terms, drugs)


def _place_features(place: int, sentences: int) -> list[float]:
    """From `place` to `only`; `place` counts from 0."""
    return [
        place / max(1, sentences - 1),
        float(place == 0),
        float(place == sentences - 1),
        float(sentences == 1),
    ]


def _content_features(own: _CandidateWords, counts: Counter[str]) -> list[float]:
    """From `terms` to `no_mark`; `counts` has in how many sentences of the message a word is."""
    repeated = sum(counts[w] > 1 for w in own.bag)
    return [
        float(min(own.terms, 3)),
        float(own.drugs > 0),
        own.cues[-1] * (own.terms + own.drugs == 0),
        float(not own.bag),
        repeated / max(1, len(own.bag)),
        float(repeated),
        float(own.text.isupper()),
        float(own.text.rstrip()[-1:] not in (".", "?", "!")),
    ]


def _lead_features(
    message: Message, one: Candidate, focus: Focus | None, n_words: int, pronoun: float
) -> list[float]:
    """The features of the sentence in front; zeros where there is none."""
    if one.lead is None:
        return [0.0] * 8
    n_names = sum(within(one.lead.sentence, spans) for spans in (message.terms, message.drugs))
    content = {w for w in word_keys(one.lead.text) if w not in FUNCTION_WORDS}
    return [
        float(not one.lead.asks),
        float(one.lead.asks),
        math.log(len(one.lead.text.split())),
        float(min(n_names, 3)),
        float(focus is not None and one.lead.focus is None),
        float(n_words <= _SHORT),
        pronoun,
        float(content <= _HELP_WORDS),
    ]


def _key_features(message: Message, one: Candidate, total: float) -> list[float]:
    """The highest probability of a key word in a candidate, the sum over its words, the share of these in the
    `total` of the message, and what the sentence in front adds to the sum.
    """
    own = key_sums(message, [one.part])
    both = key_sums(message, [one.part, one.lead.part]) if one.lead else own
    return [
        max(both.values(), default=0.0),
        sum(both.values()),
        sum(both.values()) / max(1e-6, total),
        sum(both.values()) - sum(own.values()),
    ]


def key_sums(message: Message, parts: Sequence[Span]) -> dict[str, float]:
    """The words of parts of a message with the highest probability of each."""
    found: dict[str, float] = {}
    for part in parts:
        for word, p in message.key_words(part):
            found[word] = max(p, found.get(word, 0.0))
    return found


def _bag(sentence: str) -> set[str]:
    """Words that a sentence may share with another."""
    return {w for w in word_keys(sentence) if len(w) >= _LEAST_LETTERS and w not in FUNCTION_WORDS}


def within(sentence: Span, names: Sequence[Span]) -> int:
    """How many names, in the order of the text, begin in a sentence."""
    first, last = (bisect_left(names, at, key=lambda n: n.start) for at in (sentence.start, sentence.end))
    return last - first
