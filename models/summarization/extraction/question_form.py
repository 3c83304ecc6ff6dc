"""Brings an asking clause into the form of a question, by moving its words: "if it is safe" becomes "Is it
safe?". Behind the subject of another verb it gets the "do" of a question: "if it contains gluten" becomes
"Does it contain gluten?". A clause that fits no rule is not changed.
"""

from __future__ import annotations

import re

from models.summarization.sentence_selection import end_marks, is_question
from models.types import Span

_MODAL = r"can|could|will|would|should|may|might|ought(?= to\b)"
_AUXILIARY = (
    rf"(?P<auxiliary>is|are|was|were|{_MODAL}|"
    r"(?:has|have)(?= (?:been|had|got|gone|become|seen|made|done|taken|given|found|\w+ed)\b))"
)
_SINGULAR = r"(?:it|this|that|he|she|any(?:one|body|thing)(?: else)?)"
_PLURAL = r"(?:they|these|those|we|you)"
_PRONOUN = rf"(?:{_SINGULAR}|there|{_PLURAL})"
_I = rf"i(?= (?:{_MODAL}|have)\b)"
#: A word of a subject: neither one that opens a clause nor a verb that would be taken for a part of it.
_WORD = (
    r"(?!(?:what|how|why|where|who|which|when|if|whether|that|and|or|but|is|are|was|were|can|could|will|"
    r"would|should|may|might|has|have|had|do|does|did|knows?|had|having|i|he|she|they|we|you|it|there)\b)"
    r"[\w'\u2019-]+"
)
_SUBJECT = (
    rf"(?P<subject>{_PRONOUN}|{_I}|"
    rf"(?:the|my|a|an|any|this|these|that|his|her|our|your|their|{_WORD})(?: {_WORD}){{0,6}})"
)
_DETERMINED = (
    rf"(?P<subject>{_PRONOUN}|{_I}|(?:the|my|a|an|any|this|these|his|her|our|your|their)(?: {_WORD}){{1,5}})"
)
#: "if it is safe": the opening is in front of the clause.
_WHETHER = re.compile(rf"{_SUBJECT} {_AUXILIARY}\b(?!['\u2019])(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_AM_I = re.compile(r"(?P<subject>i) (?P<auxiliary>am)\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
#: "what the dose is", "how bad it can be", "what kind of food I can eat".
_INDIRECT = re.compile(
    rf"(?P<word>what|where|who|why|when|how(?: (?:long|much|many|often|bad|soon|safe|likely))?|"
    r"(?:at|in|for|by|with) (?:what|which) [a-z]+|(?:what|which|how (?:many|much))(?: (?!the\b)[a-z-]+){1,4}?"
    rf"(?= (?:{_PLURAL}|it|he|she|i)\b)) {_DETERMINED} {_AUXILIARY}\b(?!['\u2019])(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
#: Verbs that are surely the verb of a clause behind its subject, by the form with which "does" goes.
_VERBS: dict[str, str] = {
    third: third.removesuffix("es") if third.endswith(("ches", "shes", "sses", "oes")) else third[:-1]
    for third in re.findall(
        r"\w+",
        "contains causes helps works affects interacts needs means makes takes lasts goes comes gets hurts "
        "does happens runs spreads covers costs passes fades clears stops counts matters shows improves "
        "heals grows changes depends returns disappears raises lowers increases decreases interferes reacts "
        "kills protects prevents requires involves includes exists leads starts begins reduces treats cures "
        "triggers remains stays stains harms damages thins wears",
    )
} | {"has": "have", "applies": "apply"}
_VERB = rf"(?P<verb>{'|'.join([*_VERBS, *_VERBS.values()])})"
_VERB_FORMS = f"(?:{'|'.join(_VERBS)})"
#: Behind a pronoun nearly every word is its verb: not an adverb, a negation or a verb in the past.
_NO_VERB = (
    r"(?:\w+(?:ed|ly|n['\u2019]t)|not|never|also|ever|still|just|even|always|all|both|too|so|only|already|now|"
    r"had|did|got|went|took|gave|made|told|said|found|felt|came|became|began|ate|drank|fell|broke|kept|left|"
    r"lost|met|put|ran|saw|sent|thought|knew|must|shall|ought|am|be|been|being|to|of|in|on|at|with|for|and|"
    rf"or|who|that|which|{_MODAL}|is|are|was|were|does|do)\b"
)
_ANY_VERB = rf"(?!{_NO_VERB})(?P<verb>[a-z]{{2,}}"
_PRONOUN_DOES = rf"(?P<subject>{_SINGULAR}) {_ANY_VERB}(?<![sui])s|{'|'.join(_VERBS)})\b"
_PRONOUN_DO = rf"(?P<subject>{_PLURAL}|i) {_ANY_VERB})\b"
#: What follows shows that the clause is no question itself: "if I have gout is it bad".
_NO_QUESTION = r"(?!.*\b(?:is|are|can|do|does|will|should) (?:it|this|that|there|they|i|he|she)\b)"
#: "if my capsules have gelatin", "if it passes to children", "what they do in a biopsy": a clause with a verb
#: that does not move.
_WHETHER_DO = [
    re.compile(rf"{start}(?P<rest>{_NO_QUESTION}.*)", re.IGNORECASE | re.DOTALL)
    for start in (rf"{_DETERMINED[:-1]}|i(?= )) {_VERB}\b", _PRONOUN_DOES, _PRONOUN_DO)
]
_INDIRECT_DO = re.compile(
    rf"(?P<word>what|where|why|when|how(?: (?:long|much|many|often|soon))?) "
    rf"(?P<subject>{_PRONOUN}|i|(?:the|my|this|these|his|her)(?: {_WORD}){{1,3}}|"
    rf"(?!(?:long|much|many|often|soon|far|bad|well)\b){_WORD}(?= (?!do){_VERB_FORMS}\b)) "
    rf"(?P<adverb>(?:[a-z]+ly )?){_VERB}\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
#: What is asked for by its name alone: "I need to know the life expectancy of someone with lupus".
_NAMED = re.compile(
    r"the (?:(?:best|usual|common|normal|average|typical|exact|right|correct|recommended|maximum|possible|"
    r"likely|main|long[ -]term|short[ -]term|early|first|latest|current|survival|success|recovery|life) )?"
    r"(?P<noun>chances?|odds|risks?|causes?|reasons?|(?:side[ -])?effects?|symptoms?|signs|treatments?|"
    r"complications|ingredients|ways?|options|names?|differences?|benefits|dangers|tests?|drawbacks|expectancy|"
    r"prognosis|outlook|dose|dosage|cure|cost|price|range|rate|time|meaning|percentage|likelihood|diet|procedure)"
    r"(?= (?:to|on|with|when|after|before|during|if|that|why|i|we|he|she|my)\b|[.?!\s]*$)|"
    rf"the (?:{_WORD} ){{0,3}}?(?P<of>{_WORD})(?= (?:of|for|between) )|"
    r"the (?:longest|shortest|most|least|highest|lowest|earliest)(?= (?:an?|the|i|we|he|she|my|that)\b)",
    re.IGNORECASE,
)
_NAMED_PLURAL = re.compile(r".{0,200}(?<![sui])s", re.IGNORECASE)
#: "it's", "they'll", "why that's": pronoun and verb of a clause in one word.
_CONTRACTED = re.compile(
    rf"(?P<pronoun>(?:(?:what|where|who|why|when|how)(?: \w+)? )?(?:{_PRONOUN}|i))['\u2019]"
    r"(?P<verb>s|re|ll|d|m|ve)\b(?P<perfect> (?:been|got|had|gone|become|better)\b)?",
    re.IGNORECASE,
)
_WHOLE = {"s": "is", "re": "are", "ll": "will", "d": "would", "m": "am", "ve": "have"}
_WHOLE_PERFECT = _WHOLE | {"s": "has", "d": "had"}
#: The end of what stands in front of a clause that begins with its subject.
_OPENING = re.compile(r"\b(?:if|whether(?: or not)?)\s+$", re.IGNORECASE)
#: The end of what stands in front of something that the writer wants to know.
_TO_KNOW = re.compile(
    r"\b(?:(?:to|me|us) (?:know|ask(?: you)?|find out|learn|understand)|(?:tell|advise) (?:me|us)|wondering)"
    r"[,:]?\s+$",
    re.IGNORECASE,
)


def is_fragment(before: str, clause: str) -> bool:
    """Whether a clause behind "I want to know" names what no question can be made of, "the truth"."""
    return clause[:4].lower() == "the " and bool(_TO_KNOW.search(before)) and not _NAMED.match(clause)


def inverts(clause: str) -> bool:
    """Whether a clause behind "if" can be brought into the word order of a question."""
    return _behind_if(_expanded(clause)) is not None


def question_form(before: str, clause: str) -> str:
    """The clause in the word order of a question, where what stands `before` it in its sentence shows that it
    is an indirect one; else the clause.
    """
    if not before.strip():
        return clause
    expanded = _expanded(clause)
    if _OPENING.search(before):
        return _behind_if(expanded) or clause
    if asked := _asked_by_name(before, clause):
        return asked
    if found := _INDIRECT_DO.match(expanded):
        verb = found["verb"]
        moved = f"{found['subject']} {found['adverb']}{_base(verb)}"
        return f"{found['word']} {_do(verb)} {moved}{found['rest']}"
    if found := _INDIRECT.match(expanded):
        return f"{found['word']} {found['auxiliary']} {found['subject']}{found['rest']}"
    return clause


def _asked_by_name(before: str, clause: str) -> str | None:
    """The question for what a clause names, "the dose of it"; None where it does not."""
    named = _NAMED.match(clause)
    if named is None or not _TO_KNOW.search(before):
        return None
    noun = named["noun"] or named["of"] or ""
    return f"what {'are' if _NAMED_PLURAL.fullmatch(noun) else 'is'} {clause}"


def _behind_if(clause: str) -> str | None:
    """A clause behind "if" in the word order of a question; None where it fits no rule."""
    if found := _AM_I.match(clause) or _WHETHER.match(clause):
        return f"{found['auxiliary'].lower()} {found['subject']}{found['rest']}"
    for pattern in _WHETHER_DO:
        if found := pattern.match(clause):
            verb = found["verb"]
            return f"{_do(verb)} {found['subject']} {_base(verb)}{found['rest']}"
    return None


def _expanded(clause: str) -> str:
    """With a contraction at its start in two words: "it is" for "it's"."""
    found = _CONTRACTED.match(clause)
    if found is None:
        return clause
    whole = (_WHOLE_PERFECT if found["perfect"] else _WHOLE)[found["verb"].lower()]
    return f"{found['pronoun']} {whole}{clause[found.end('verb') :]}"


def _do(verb: str) -> str:
    return "do" if _base(verb) == verb else "does"


def _base(verb: str) -> str:
    """The verb without the ending that goes with "it"."""
    verb = verb.lower()
    if verb in _VERBS:
        return _VERBS[verb]
    if not verb.endswith("s") or verb.endswith(("ss", "us", "is")):
        return verb
    if verb.endswith(("ches", "shes", "sses", "xes", "oes", "zzes")):
        return verb.removesuffix("es")
    return f"{verb[:-3]}y" if verb.endswith("ies") else verb[:-1]


def as_question(sentence: str, part: Span) -> str:
    """The part of a sentence as it is shown: in the form of a question where it is an indirect one, with a
    capital first, and a question mark behind a question.
    """
    own = sentence[part.start : part.end]
    clause = question_form(sentence[: part.start], own)
    asks = clause != own or "?" in end_marks(sentence) or is_question(clause)
    if asks and "?" not in end_marks(clause):
        clause = clause.rstrip(".!,;\u2026 ") + "?"
    return capitalised(clause)


def capitalised(text: str) -> str:
    """The text with a capital first, where lower case gives the same text again."""
    first = text[:1].upper()
    return first + text[1:] if first.lower() == text[:1] else text
