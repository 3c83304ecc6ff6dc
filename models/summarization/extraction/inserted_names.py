"""Which names a chosen question lacks, and how they are put into it.

A name stands in front of the question, as its topic, or behind it in brackets, where it is less sure or
another one is in front already.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from models.drugs import DrugLexicon
from models.summarization.extraction.answer_candidates import Candidate, names
from models.summarization.extraction.focus import Focus
from models.summarization.extraction.focus_features import FEATURES as FOCUS_FEATURES
from models.summarization.extraction.focus_features import SOURCES
from models.summarization.extraction.key_words import FUNCTION_WORDS
from models.summarization.extraction.message import Message
from models.summarization.extraction.question_form import capitalised
from models.summarization.medical_entities import named_in, word_keys
from models.types import Span

_MEDICINE = (
    r"(?:medicines?|medications?|meds?|drugs?|pills?|tablets?|stuff|injections?|patch(?:es)?|inhaler|"
    r"antibiotics?|supplements?|drops|cream|ointment|spray|blood thinners?)"
)
_ILLNESS = r"(?:diseases?|conditions?|disorders?|syndromes?|illness(?:es)?|problems?|diagnosis|infections?)"
_PATTERNS = {
    "it": r"\b(?:it|this|that)\b",
    "they": r"\b(?:they|them|these|those|one|ones)\b",
    "medicine": rf"\b{_MEDICINE}\b",
    "illness": rf"\b{_ILLNESS}\b|\bsymptoms?\b",
    "treats": r"\b(?:treat\w*|cure\w*|help\w*|cause\w*|specialist|doctor|test\w*|diagnos\w*)\b",
    "names": r"\b(?:what (?:is|it is|this)|stages?|inherit\w*|genetic\w*|hereditary|pass(?:ed)?|run in|"
    r"genes?|curable|contagious|prognosis|outlook|kind of doctor|who|check|survive\w*|die|spread|go away)\b",
    "takes": r"\b(?:take|taking|stop\w*|safe|dose|mg|effects?|together|quit|switch|with)\b",
}
_CUES = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()}
#: The features of a name for a question, in the order of `features`. "none" is the weight of leaving it out.
FEATURES = (
    "none",
    "probability",
    "first",
    *SOURCES,
    "mentions",
    "words",
    "cosine",
    "form",
    "key_most",
    "key_least",
    "key_named",
    "key_lacked",
    "before",
    "distance",
    "same_sentence",
    "question_words",
    "content_words",
    "part_named",
    "longer_named",
    *(f"names_{named}_{kind}" for named in ("drug", "other") for kind in ("drug", "other")),
    *(f"{cue}_{kind}" for cue in _PATTERNS for kind in ("drug", "other")),
)
#: The row of leaving a name out.
NONE = [1.0, *[0.0] * (len(FEATURES) - 1)]
#: Maximum number of inserted names.
MOST = 2
#: Maximum number of words of a name by `longest_name`.
MOST_WORDS = 4
#: Words are forms of one that share so many letters, and all but so many at the end.
_LEAST_ALIKE, _ENDS = 5, 3
#: First words that lose their capital behind the focus.
_LOWERED = frozenset(
    re.findall(
        r"\w+",
        "a about after also am an and any anyone are as at be before besides but by can could did do does "
        "during else for from had has have he her his how if in is it its may my no of on or our should "
        "since so some that the their them there they these this those to was we were what when where "
        "which who whom whose why will with would you your",
    )
)
#: In front of what the writer cannot take: its name alone would say that it is taken.
_ALLERGIC = re.compile(
    r"(?<!\bnot )(?<!\bno )\b(?P<front>(?:allergic|allergy|allergies|intolerant) to)\s+"
    r"(?:[\w-]+(?:,| and| or|, and|, or|/) ?){0,3}"
    r"(?:(?!(?:and|or|but|so|it|is|was|i|on|take|took|which|that|when|after|than|then|for|from|with)\b|"
    r"\w+ing )[\w'\u2019-]+ )?\Z",
    re.IGNORECASE,
)
_FRONT_REACH = 60


class _ChosenQuestion(NamedTuple):
    """The chosen question, as the features of the names for it need it."""

    text: str
    """of the message, in lower case"""
    sentence: Span
    words: set[str]
    numbers: list[float]
    cues: list[float]
    key_named: float
    """the probability of its most probable key word"""


class Insertable(NamedTuple):
    """A name that a question lacks, with its features."""

    focus: Focus
    features: list[float]


def insertables(
    message: Message,
    chosen: Candidate,
    found: Sequence[Focus],
    rows: Sequence[Sequence[float]],
    probabilities: Sequence[float],
) -> list[Insertable]:
    """What may be inserted into a question of a message: the candidates `found` that it does not name, of
    which these are the features and the probabilities of the focus ranker.
    """
    question = _chosen_question(message, chosen, found)
    order = sorted(range(len(found)), key=lambda i: (-round(probabilities[i], 9), i))
    out = []
    for rank, i in enumerate(order):
        if not names(chosen.text, found[i]):
            likely = [probabilities[i], float(rank == 0)]
            row = [0.0, *likely, *_features(question, found[i], rows[i])]
            out.append(Insertable(found[i], row))
    return out


def _features(question: _ChosenQuestion, focus: Focus, ranked: Sequence[float]) -> list[float]:
    """FEATURES of a name from those of its sources on; `ranked` are its features for the focus ranker."""
    row = dict(zip(FOCUS_FEATURES, ranked, strict=True))
    own = {w for w in word_keys(focus.text) if w not in FUNCTION_WORDS}
    drug = float("drug" in focus.sources)
    start = question.sentence.start
    before = question.text.rfind(focus.text.lower(), 0, start)
    return [
        *(row[s] for s in SOURCES),
        row["mentions"],
        row["words"],
        row["cosine"],
        row["form"],
        row["key_most"],
        row["key_least"],
        question.key_named,
        max(0.0, row["key_most"] - question.key_named),
        float(before >= 0),
        (start - before) / 200 if before >= 0 else 3.0,
        float(start <= focus.span.start < question.sentence.end),
        *question.numbers,
        float(bool(own & question.words)),
        row["in_longer"],
        *(value * kind for value in question.cues for kind in (drug, 1 - drug)),
    ]


def choose(offered: Sequence[Insertable], probabilities: Sequence[float], least: float) -> list[int]:
    """The positions of the names to insert, the most probable first: at most MOST, from a probability on, and
    none that shares a word with another.
    """
    chosen: list[int] = []
    used: set[str] = set()
    for i in sorted(range(len(offered)), key=lambda i: (-round(probabilities[i], 9), i)):
        own = set(word_keys(offered[i].focus.text)) - FUNCTION_WORDS
        if probabilities[i] < least or len(chosen) == MOST:
            break
        if not own & used:
            chosen.append(i)
            used |= own
    return chosen


def distinct(found: Iterable[Focus]) -> list[Focus]:
    """The names without those whose words another one before has: "vulvar itching", and "itching" by its
    longest name once more.
    """
    kept: list[Focus] = []
    for one in found:
        if not any(names(other.text, one) for other in kept):
            kept.append(one)
    return kept


def repeats(shown: str, focus: Focus, drugs: DrugLexicon) -> bool:
    """Whether a name says again what an answer says: its medicine, or all of its words in any form; or
    what is in no list and another word specifies there: "parasite infection" beside "tapeworm infection".
    """
    if named_in(focus.text, shown, drugs):
        return True
    said, own = word_keys(shown), [w for w in word_keys(focus.text) if w not in FUNCTION_WORDS]
    new = [w for w in own if not any(_alike(w, other) for other in said)]
    if not new or {"drug", "term"} & focus.sources or not focus.text.islower():
        return not new
    specified = (b for a, b in itertools.pairwise(said) if a not in FUNCTION_WORDS)
    return own[-1] not in new and any(_alike(own[-1], word) for word in specified)


def _alike(one: str, other: str) -> bool:
    """Whether two words are forms of one, by what they begin with: "diabetic" and "diabetes"."""
    begin = max(_LEAST_ALIKE, len(one) - _ENDS, len(other) - _ENDS)
    return one == other or (one[:begin] == other[:begin] and min(len(one), len(other)) >= begin)


def with_allergy(text: str, focus: Focus) -> Focus:
    """The name as it is shown: "allergic to penicillin", which no pronoun stands for, where the text says so
    at its first mention.
    """
    found = allergic_to(text, focus.span.start)
    return Focus(focus.span, f"{found['front'].lower()} {focus.text}") if found else focus


def allergic_to(text: str, start: int) -> re.Match[str] | None:
    """The words "allergic to" in front of a name that starts here; None where it has none."""
    return _ALLERGIC.search(text, max(0, start - _FRONT_REACH), start)


def with_names(shown: str, others: Sequence[Focus]) -> str:
    """The question with names in brackets behind: "Is it safe? (gout)"."""
    return f"{shown} ({', '.join(f.text for f in others)})" if others else shown


def with_topic(shown: str, focus: Focus) -> str:
    """The question behind its topic: "Melatonin: is it safe?"."""
    first, space, rest = shown.partition(" ")
    if first.lower() in _LOWERED and (len(first) == 1 or not first.isupper()):
        shown = first.lower() + space + rest
    return f"{capitalised(focus.text)}: {shown}"


def _chosen_question(message: Message, chosen: Candidate, found: Sequence[Focus]) -> _ChosenQuestion:
    keys = word_keys(chosen.text)
    content = {w for w in keys if w not in FUNCTION_WORDS}
    named = ["drug" in f.sources for f in found if names(chosen.text, f)]
    cues = [float(any(named)), float(not all(named))]
    cues += [float(cue.search(chosen.text) is not None) for cue in _CUES.values()]
    numbers = [math.log(max(1, len(keys))), float(len(content))]
    parts = [chosen.part, *([chosen.lead.part] if chosen.lead else [])]
    key_named = max((p for part in parts for p in message.key_probabilities(part)), default=0.0)
    return _ChosenQuestion(message.text.lower(), chosen.sentence, content, numbers, cues, key_named)


def longest_name(focus: Focus, found: Sequence[Focus]) -> Focus:
    """The longest name of up to MOST_WORDS words that has this one in it: "Cushing" is part of "Cushing
    disease". A medicine stays as it is.
    """
    if "drug" in focus.sources:
        return focus
    inside = rf"(?<!\w){re.escape(focus.text.lower())}(?!\w)"
    longer = [
        f
        for f in found
        if len(f.text.split()) <= MOST_WORDS
        and not FUNCTION_WORDS & set(f.text.lower().split())
        and re.search(inside, f.text.lower())
    ]
    return max([focus, *longer], key=lambda f: len(f.text))
