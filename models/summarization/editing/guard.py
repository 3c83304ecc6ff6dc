"""Which openings a message allows: its kinds of question must be asked in words, what it asks about must be
of the right type, and nothing that matters of a clause that asks may be lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from models.summarization.editing.asked import NEGATION, NUMBER, PRONOUN, Asked
from models.summarization.editing.openings import CUES, KINDS, LISTED, Plan, all_asked
from models.summarization.editing.slots import Slot
from models.summarization.extraction.focus import FUNCTION_WORDS
from models.summarization.medical_entities import GENERAL, word_keys

_OF_MEDICINES = frozenset(("ingredients", "gluten", "side_effects"))
_OF_ILLNESSES = frozenset(
    ("treatment", "cause", "who_to_see", "prognosis", "diagnosis", "inheritance", "symptoms", "complications")
)
_OF_PERSONS = frozenset(("who_to_see", "specialist"))
#: Kinds that a question for yes or no asks.
_OF_YES_NO = frozenset(("inheritance", "gluten", "ingredients"))
#: Words that ask for a treatment, unlike "help".
_STRONG = re.compile(
    r"\b(?:treat\w*|cur(?:e|es|ed|ing|able)|remed\w+|relie\w+|get rid|medicines?|medications?|therap\w+)\b",
    re.IGNORECASE,
)
#: A question for yes or no that asks for more.
_OPEN = re.compile(
    r"(?:is|are) there\b|(?:can|could|would|will|do|does|have) (?:you|u|any(?:one|body)|some(?:one|body))\b|"
    r"is it (?:curable|treatable)",
    re.IGNORECASE,
)
#: A question about one of several things, and one about a person.
_CHOICE = re.compile(r"\bwhich of\b|\bor not\b", re.IGNORECASE)
_WHO = re.compile(
    r"who\b|(?:what|which) (?:(?:kind|type|sort) of )?(?:a )?(?:doctor|specialist|clinic)", re.IGNORECASE
)
#: A further question behind the first.
_SECOND = re.compile(
    r"(?:\b(?:and|or)\b|,)\s+(?:what|how|why|where|who|which|when|is|are|can|do|does|will|should|would|could)\b",
    re.IGNORECASE,
)
_PROCEDURE = re.compile(
    r"(?:surgery|operation|transplant(?:ation)?|replacement|removal|exam|tests?|scan|mri|vaccines?|"
    r"vaccination|biopsy|therapy|treatment)$",
    re.IGNORECASE,
)
#: Least probabilities of a name: alone by its capitals; outside of a sentence with a pronoun; to be what its
#: sentence is about; and of the kind of a message that does not ask.
_CAPITALS, _SURE, _ABOUT, _UNASKED_KIND = 0.5, 0.5, 0.2, 0.4
#: Words that a clause that asks may lose, those of the sentence in front, and those of a title, which is a
#: statement of up to _TITLE words.
_LOST, _LEAD_LOST, _TITLE_LOST, _TITLE = 1, 2, 2, 10


def allowed(asked: Asked, plan: Plan, slot: Slot, text: str) -> bool:
    """Whether the `text` that asks the kinds of a plan about a slot may be the answer."""
    keys = frozenset(word_keys(text))
    fits = all(_fits(KINDS[kind], slot) for kind in plan.kinds) and _is_about(asked, slot)
    if not fits or not _names_all(asked.drugs, keys):
        return False
    if plan.nouns:
        return not asked.asks or _lists_all(asked, keys)
    if not _is_worded(asked, plan):
        return False
    if asked.asks:
        return _keeps_the_question(asked, plan, text, keys) and _is_this_kind(asked, plan)
    return _keeps_the_statement(asked, plan, keys)


def _is_worded(asked: Asked, plan: Plan) -> bool:
    """Whether the clause asks these kinds in words, or the message where its clause does not ask; and no
    other kind by name.
    """
    if len(asked.nouns) > 1 and not all_asked(asked.nouns, plan.kinds):
        return False
    where = asked.clause if asked.asks else asked.message.text
    return all(CUES[kind].search(where) for kind in plan.kinds)


def _fits(kind: str, slot: Slot) -> bool:
    """Whether the slot can be what a question of this kind is about."""
    if GENERAL.fullmatch(slot.text.lower()):
        return False
    if kind in _OF_MEDICINES:
        return "drug" in slot.sources or "term" not in slot.sources
    if kind in _OF_ILLNESSES and ("drug" in slot.sources or _PROCEDURE.search(slot.text)):
        return False
    if not slot.sources - {"capitals", "cue"}:
        return slot.source == "phrase" or slot.text.isupper() or slot.probability >= _CAPITALS
    return True


def _is_about(asked: Asked, slot: Slot) -> bool:
    """Whether a slot is what the chosen sentence is about: the name that it surely lacks, or a part of it, or
    what shares a word with a likely name in it; any likely name where it has none.
    """
    kept, sentence = asked.kept, asked.kept.chosen.sentence
    keys = set(word_keys(slot.text)) - FUNCTION_WORDS
    if kept.sure:
        return bool(keys & set(word_keys(kept.names[0].text)))
    if sentence.start <= slot.span.start and slot.span.end <= sentence.end:
        return True
    if asked.asks and slot.probability < _SURE and PRONOUN.search(kept.chosen.text):
        return False
    inside = [
        f
        for f, p in zip(asked.names, asked.probabilities, strict=True)
        if p >= _ABOUT and sentence.start <= f.span.start and f.span.end <= sentence.end
    ]
    return not inside or any(keys & set(word_keys(f.text)) for f in inside)


def _lists_all(asked: Asked, keys: frozenset[str]) -> bool:
    """Whether a question for information that lists its nouns says what a clause asks."""
    lost = [w for w in asked.content - keys if not any(p.fullmatch(w) for _, _, p in LISTED)]
    return len(lost) <= _LOST and (not asked.yes_no or _OPEN.match(asked.kept.chosen.text) is not None)


def _is_this_kind(asked: Asked, plan: Plan) -> bool:
    """Whether the form of a clause that asks is that of these kinds."""
    question, kinds = asked.kept.chosen.text, {KINDS[k] for k in plan.kinds}
    if asked.yes_no and not _OPEN.match(question) and KINDS[plan.kinds[0]] not in _OF_YES_NO:
        return False
    if _CHOICE.search(asked.clause) or (len(plan.kinds) == 1 and _SECOND.search(asked.clause)):
        return False
    return not _WHO.match(question) or bool(kinds & _OF_PERSONS)


def _keeps_the_question(asked: Asked, plan: Plan, text: str, keys: frozenset[str]) -> bool:
    """Whether no name, number or negation of a clause that asks is lost, and few other words."""
    lost = [w for w in asked.content - keys if not any(CUES[k].fullmatch(w) for k in plan.kinds)]
    weak = KINDS[plan.kinds[0]] == "treatment" and not _STRONG.search(asked.clause)
    sure = [asked.kept.names[0].text] if asked.kept.sure else []
    return (
        len(lost) <= (0 if weak else _LOST)
        and len(asked.lead - keys) <= _LEAD_LOST
        and _names_all([*asked.terms, *sure], keys)
        and asked.numbers <= set(NUMBER.findall(text))
        and (not asked.negated or NEGATION.search(text) is not None)
    )


def _keeps_the_statement(asked: Asked, plan: Plan, keys: frozenset[str]) -> bool:
    """Whether a message that does not ask surely means this kind, and a title loses few words."""
    lost = [w for w in asked.content - keys if not any(cue.fullmatch(w) for cue in CUES)]
    is_title = len(asked.clause.split()) <= _TITLE
    return asked.kinds[plan.kinds[0]] >= _UNASKED_KIND and (not is_title or len(lost) <= _TITLE_LOST)


def _names_all(names: Sequence[str], keys: frozenset[str]) -> bool:
    """Whether at least a word of each name is among the words of an answer."""
    return all(set(word_keys(name)) & keys for name in names)
