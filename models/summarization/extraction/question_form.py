"""Brings an asking clause into the form of a question, by moving its words: "if it is safe" becomes "Is it
safe?". Behind the subject of another verb it gets the "do" of a question: "if it contains gluten" becomes
"Does it contain gluten?". A clause that fits no rule is not changed.
"""

from __future__ import annotations

import re

from models.summarization.sentence_selection import is_question
from models.types import Span

_AUXILIARY = r"(?P<auxiliary>is|are|was|were|can|could|will|would|should|may|might)"
_PRONOUN = r"(?:it|this|that|there|they|these|those|we|you|he|she|any(?:one|body|thing))"
#: A word of a subject: neither one that opens a clause nor a verb that would be taken for a part of it.
_WORD = (
    r"(?!(?:what|how|why|where|who|which|when|if|whether|that|and|or|but|is|are|was|were|can|could|will|"
    r"would|should|may|might|has|have|had|do|does|did|knows?|had|having|i|he|she|they|we|you|it|there)\b)"
    r"[\w'\u2019-]+"
)
_SUBJECT = (
    rf"(?P<subject>{_PRONOUN}|i(?= (?:can|could|will|would|should|may|might)\b)|"
    rf"(?:the|my|a|an|any|this|these|that|his|her|our|your|their|{_WORD})(?: {_WORD}){{0,4}})"
)
_DETERMINED = (
    rf"(?P<subject>{_PRONOUN}|i(?= (?:can|could|will|would|should|may|might)\b)|"
    rf"(?:the|my|a|an|any|this|these|his|her|our|your|their)(?: {_WORD}){{1,5}})"
)
#: "if it is safe": the opening is in front of the clause.
_WHETHER = re.compile(rf"{_SUBJECT} {_AUXILIARY}\b(?!['\u2019])(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
#: "what the dose is", "how bad it can be".
_INDIRECT = re.compile(
    rf"(?P<word>what|where|who|why|when|how(?: (?:long|much|many|often|bad|soon|safe|likely))?) "
    rf"{_DETERMINED} {_AUXILIARY}\b(?!['\u2019])(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
#: Verbs that are surely the verb of a clause behind its subject, by the form with which "does" goes.
_VERBS = {
    "has": "have", "contains": "contain", "causes": "cause", "helps": "help", "works": "work",
    "affects": "affect", "interacts": "interact", "needs": "need", "means": "mean", "makes": "make",
    "takes": "take", "lasts": "last", "goes": "go", "comes": "come", "gets": "get", "hurts": "hurt",
    "does": "do", "happens": "happen", "runs": "run", "spreads": "spread", "covers": "cover", "costs": "cost",
}  # fmt: skip
_VERB = rf"(?P<verb>{'|'.join([*_VERBS, *_VERBS.values()])})"
#: "if my capsules have gelatin", "what they do in a biopsy": a clause with a verb that does not move.
_WHETHER_DO = re.compile(
    rf"{_DETERMINED[:-1]}|i(?= )) {_VERB}\b"
    r"(?P<rest>(?!.*\b(?:is|are|can|do|does|will|should) (?:it|this|that|there|they|i|he|she)\b).*)",
    re.IGNORECASE | re.DOTALL,
)
_INDIRECT_DO = re.compile(
    rf"(?P<word>what|where|why|when|how(?: (?:long|much|many|often|soon))?) "
    rf"(?P<subject>{_PRONOUN}|i|(?:the|my|this|these|his|her)(?: {_WORD}){{1,3}}) {_VERB}\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
#: The end of what stands in front of a clause that begins with its subject.
_OPENING = re.compile(r"\b(?:if|whether(?: or not)?)\s+$", re.IGNORECASE)
#: First words of a subject that are written small within a question.
_SMALL = re.compile(
    r"(?:it|this|that|there|they|these|those|we|you|he|she|anyone|anybody|anything|the|my|a|an|any|his|her|"
    r"our|your|their)",
    re.IGNORECASE,
)


def inverts(clause: str) -> bool:
    """Whether a clause behind "if" can be brought into the word order of a question."""
    return _WHETHER.match(clause) is not None or _WHETHER_DO.match(clause) is not None


def question_form(before: str, clause: str) -> str:
    """The clause in the word order of a question, where what stands `before` it in its sentence shows that it
    is an indirect one; else the clause.
    """
    if _OPENING.search(before) and (found := _WHETHER.match(clause)):
        return f"{found['auxiliary'].lower()} {_lower(found['subject'])}{found['rest']}"
    if _OPENING.search(before) and (found := _WHETHER_DO.match(clause)):
        return f"{_do(found['verb'])} {_lower(found['subject'])} {_base(found['verb'])}{found['rest']}"
    if before.strip() and (found := _INDIRECT_DO.match(clause)):
        verb = found["verb"]
        return f"{found['word']} {_do(verb)} {_lower(found['subject'])} {_base(verb)}{found['rest']}"
    if before.strip() and not clause.rstrip().endswith("?") and (found := _INDIRECT.match(clause)):
        return f"{found['word']} {found['auxiliary']} {found['subject']}{found['rest']}"
    return clause


def _do(verb: str) -> str:
    return "does" if verb.lower() in _VERBS else "do"


def _base(verb: str) -> str:
    return _VERBS.get(verb.lower(), verb)


def as_question(sentence: str, part: Span) -> str:
    """The part of a sentence as it is shown: in the form of a question where it is an indirect one, with a
    capital first, and a question mark behind a question.
    """
    clause = question_form(sentence[: part.start], sentence[part.start : part.end])
    asks = sentence.rstrip("\"') ").endswith("?") or is_question(clause)
    if asks and not clause.endswith("?"):
        clause = clause.rstrip(".!,; ") + "?"
    return capitalised(clause)


def capitalised(text: str) -> str:
    """The text with a capital first, where lower case gives the same text again."""
    first = text[:1].upper()
    return first + text[1:] if first.lower() == text[:1] else text


def _lower(subject: str) -> str:
    """The subject with a small letter first where that surely is no name."""
    first, space, rest = subject.partition(" ")
    return f"{first.lower() if _SMALL.fullmatch(first) else first}{space}{rest}"
