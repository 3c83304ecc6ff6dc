"""Which openings a message allows: its kinds of question must be asked in words, what it asks about must be
of the right type, and nothing that matters of a clause that asks may be lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from models.summarization.editing.intent import NEGATION, NUMBER, Intent, content
from models.summarization.editing.openings import CUES, INFORMATION, KINDS, LISTED, Plan, all_asked, listed
from models.summarization.editing.slots import Slot
from models.summarization.extraction.insertion import allergic_to
from models.summarization.extraction.key_words import FUNCTION_WORDS
from models.summarization.extraction.message import Message
from models.summarization.medical_entities import GENERAL, word_keys

_OF_MEDICINES = frozenset(("ingredients", "gluten", "side_effects"))
_OF_ILLNESSES = frozenset(
    ("treatment", "cause", "who_to_see", "prognosis", "diagnosis", "inheritance", "symptoms", "complications")
)
_OF_PERSONS = frozenset(("who_to_see", "specialist"))
#: Kinds that are asked by yes-no questions.
_OF_YES_NO = frozenset(("inheritance", "gluten", "ingredients"))
#: Kinds that another sentence than the chosen one may ask, if the chosen one does not ask.
_ANYWHERE = frozenset(("treatment", "information"))
#: Words that ask for a treatment, unlike "help", and those that ask for information.
_STRONG = re.compile(
    r"\b(?:treat\w*|cur(?:e|es|ed|ing|able)|remed\w+|relie\w+|get rid|medicines?|medications?|therap\w+)\b",
    re.IGNORECASE,
)
_HELP = re.compile(r"\bhelp\b", re.IGNORECASE)
#: The name of a substance or a gene: "EPI743".
_CODE = re.compile(r"[a-z]+\d\w*|\d+[a-z]{2}\w*")
#: "Treatment without surgery" is not any treatment.
_WITHOUT = re.compile(r"\b(?:without|w/o)\b", re.IGNORECASE)
_INFORMATION = re.compile(r"\b(?:info|information|literature|articles?)\b", re.IGNORECASE)
#: What information is wanted about, up to a name: "nutrition in" lupus.
_TOPIC = (
    r"\b(?:info\w*|literature|articles?|details?|materials?|brochures?|books?|more)\s+"
    r"(?:on|about|regarding|concerning)\s+((?:[\w'\u2019/-]+\s+){1,6}?)"
    r"(?:for|of|in|on|into)\s+(?:(?:an?|the|my|his|her|our)\s+)?"
)
#: A yes-no question that asks for more than yes or no.
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
#: Words that ask for a person or a place; such a clause asks no other kind.
_HELPER = re.compile(
    r"\b(?:clinics?|hospitals?|specialists?|surgeons?|physicians?|experts?|who to contact|cent(?:er|re)s?)\b",
    re.IGNORECASE,
)
#: Words in front of "done much" in "I have done much".
_HAVE = re.compile(r"\b(?:have|has|had)(?: been)?\s+$", re.IGNORECASE)
#: The beginning of a second question.
_SECOND = re.compile(
    r"(?:\b(?:and|or)\b|,)\s+(?:what|how|why|where|who|which|when|is|are|can|do|does|will|should|would|could)\b",
    re.IGNORECASE,
)
_PROCEDURE = re.compile(
    r"(?:surgery|operation|transplant(?:ation)?|replacement|removal|exam|tests?|scan|mri|vaccines?|"
    r"vaccination|biopsy|therapy|treatment|bypass|"
    r"[cb]i?pap|pacemaker|stent|pump|implant|catheter|brace|hearing aids?|inhaler|monitor|machine|device)$",
    re.IGNORECASE,
)
#: Minimum probabilities of a name: found by its capitals alone; outside of the sentence; as the topic of the
#: sentence; in a sentence that does not ask.
_CAPITALS, _SURE, _ABOUT, _UNASKED = 0.5, 0.5, 0.2, 0.25
#: "Class IV" is another illness than "class II".
_ROMAN = re.compile(r"(?i:\b(?:class|stage|type|grade|phase|factor|degree)) ([IVX]{1,4}[a-cA-C]?)\b")
#: Maximum number of words that may be lost of the sentence in front of a question.
_LEAD_LOST = 2


class Limits(NamedTuple):
    """How far an opening may differ from the clause that it replaces. The values of a release are in its
    configuration; the defaults are those of a release that states none.
    """

    asked: int = 0
    """content words that a question may lose, unless it is a yes-no question"""
    stated: int = 3
    """content words that a statement may lose"""
    stated_kind: float = 0.6
    """minimum probability of the kind if the clause does not ask"""
    helping: float = 1.0
    """minimum probability with which a message that asks for help asks for a treatment"""
    outside: float = 1.0
    """minimum probability with which a name is the topic of a sentence without names"""
    listing: float = 0.0
    """minimum probability of information with which listed nouns may replace a statement"""


STRICT = Limits()


def allowed(intent: Intent, plan: Plan, slot: Slot, text: str, limits: Limits = STRICT) -> bool:
    """Whether the `text` that asks the kinds of a plan about a slot may be the answer."""
    keys = frozenset(word_keys(text))
    fits = all(_fits(KINDS[kind], slot, intent.message) for kind in plan.kinds) and _is_about(
        intent, slot, limits
    )
    fits = fits and (INFORMATION not in plan.kinds or _keeps_the_topic(intent, plan, slot, keys))
    if not fits or not _names_all(intent.drugs, keys):
        return False
    if not intent.asks and slot.probability < _UNASKED and slot.source == "name":
        return False
    if plan.nouns:
        lists = _lists_all(intent, keys) if intent.asks else intent.kinds[INFORMATION] >= limits.listing
        return lists and set(plan.nouns) <= set(listed(_without_name(intent, slot)))
    if not _is_worded(intent, plan, slot, limits):
        return False
    if intent.asks:
        most = _most_lost(intent, plan, slot, limits)
        return _keeps_the_question(intent, plan, text, most) and _is_this_kind(intent, plan)
    return _keeps_the_statement(intent, plan, keys, limits)


def _keeps_the_topic(intent: Intent, plan: Plan, slot: Slot, keys: frozenset[str]) -> bool:
    """Whether a question for information keeps what of the name in its slot a clause asks about, and whose it
    is: "mortality in" lupus.
    """
    name = r"\s+".join(map(re.escape, slot.text.split()))
    for term in dict.fromkeys((*intent.terms, *(f.text for f in intent.names))):
        behind = rf"\b{name}\s+(?:for|of|in)\s+(?:[\w'\u2019-]+\s+){{0,2}}?{re.escape(term)}"
        if not set(word_keys(term)) & keys and re.search(behind, intent.clause, re.IGNORECASE):
            return False
    found = re.search(rf"{_TOPIC}{name}(?!\w)", intent.clause, re.IGNORECASE)
    asked = content(found[1]) - keys if found else ()
    cues = [*(CUES[kind] for kind in plan.kinds), *(words for noun, _, words in LISTED if noun in plan.nouns)]
    return all(any(cue.fullmatch(word) for cue in cues) for word in asked)


def _without_name(intent: Intent, slot: Slot) -> str:
    """The clause, behind the sentence in front of it, without the name in the slot: "hereditary" of
    "hereditary hemochromatosis" does not ask for inheritance.
    """
    lead = intent.kept.chosen.lead
    asked = f"{lead.text if lead else ''} {intent.clause}"
    name = r"\s+".join(map(re.escape, slot.text.split()))
    return re.sub(rf"(?<!\w){name}(?!\w)", " ", asked, flags=re.IGNORECASE)


def _is_worded(intent: Intent, plan: Plan, slot: Slot, limits: Limits) -> bool:
    """Whether the clause asks these kinds in words, and names no other kind. If it does not ask, another
    sentence may ask the most frequent kinds.
    """
    asked = _without_name(intent, slot)
    if not all_asked(listed(asked), plan.kinds):
        return False
    if _HELPER.search(intent.clause) and not {KINDS[k] for k in plan.kinds} & _OF_PERSONS:
        return False
    if all(CUES[kind].search(intent.clause) for kind in plan.kinds):
        outside = all(CUES[kind].search(asked) for kind in plan.kinds)
        return outside and (not intent.asks or not _only_helps(intent, plan, limits))
    first = plan.kinds[0]
    anywhere = not intent.asks and len(plan.kinds) == 1 and KINDS[first] in _ANYWHERE
    return anywhere and CUES[first].search(intent.message.text) is not None


def _only_helps(intent: Intent, plan: Plan, limits: Limits) -> bool:
    """Whether a clause asks only for help, and the probability of a treatment is below the limit. In releases
    without this limit help counts as treatment.
    """
    first = plan.kinds[0]
    if KINDS[first] != "treatment" or limits.helping >= 1 or intent.kinds[first] >= limits.helping:
        return False
    return _HELP.search(intent.clause) is not None and not _STRONG.search(intent.clause)


def _fits(kind: str, slot: Slot, message: Message) -> bool:
    """Whether the slot, a part of the message, can be what a question of this kind is about."""
    if GENERAL.fullmatch(slot.text.lower()) or CUES[KINDS.index(kind)].fullmatch(slot.text):
        return False
    if kind in _OF_MEDICINES:
        return "drug" in slot.sources or "term" not in slot.sources
    drug = "drug" in slot.sources or any(slot.span.start <= d.start < slot.span.end for d in message.drugs)
    allergen = allergic_to(message.text, slot.span.start) is not None
    if kind in _OF_ILLNESSES and (drug or allergen or _PROCEDURE.search(slot.text)):
        return False
    if slot.source == "phrase" or slot.sources - {"capitals", "cue"}:
        return True
    if "cue" in slot.sources and _HAVE.search(message.text[max(0, slot.span.start - 20) : slot.span.start]):
        return False
    return slot.text.isupper() or slot.probability >= _CAPITALS


def _is_about(intent: Intent, slot: Slot, limits: Limits) -> bool:
    """Whether a slot is the topic of the chosen sentence: the name that it certainly lacks, words of it, or a
    likely name that shares a word with one in it; any likely name if the sentence has none.
    """
    kept, sentence = intent.kept, intent.kept.chosen.sentence
    keys = set(word_keys(slot.text)) - FUNCTION_WORDS
    if intent.objects and not any(keys & own for own in intent.objects):
        return False
    if kept.sure:
        return bool(keys & set(word_keys(kept.names[0].text)))
    if keys and keys <= set(word_keys(intent.message.text[sentence.start : sentence.end])):
        return True
    outside = slot.rank == 0 and slot.probability >= limits.outside
    if not outside and (slot.probability < _SURE or "subject" not in slot.sources):
        return False
    inside = [
        f
        for f, p in zip(intent.names, intent.probabilities, strict=True)
        if p >= _ABOUT and sentence.start <= f.span.start and f.span.end <= sentence.end
    ]
    return not inside or any(keys & set(word_keys(f.text)) for f in inside)


def _lists_all(intent: Intent, keys: frozenset[str]) -> bool:
    """Whether a question for information with its listed nouns asks everything that a clause asks."""
    lost = [w for w in intent.content - keys if not any(p.fullmatch(w) for _, _, p in LISTED)]
    return not lost and (not intent.yes_no or _OPEN.match(intent.question) is not None)


def _is_this_kind(intent: Intent, plan: Plan) -> bool:
    """Whether an asking clause has the form of these kinds."""
    first = KINDS[plan.kinds[0]]
    if intent.yes_no and not _OPEN.match(intent.question) and first not in _OF_YES_NO:
        return False
    if _CHOICE.search(intent.clause) or (len(plan.kinds) == 1 and _SECOND.search(intent.clause)):
        return False
    return not _WHO.match(intent.question) or (first in _OF_PERSONS and len(plan.kinds) == 1)


def _most_lost(intent: Intent, plan: Plan, slot: Slot, limits: Limits) -> int:
    """Maximum number of content words that an asking clause may lose: none for a plain yes-no question or a
    question for the reason, and one if its sentences do not have the name in the slot.
    """
    if intent.yes_no and _OPEN.match(intent.question) is None:
        return 0
    if KINDS[plan.kinds[0]] == "cause":
        return 0
    said = frozenset(word_keys(intent.kept.chosen.text))
    elsewhere = not (frozenset(word_keys(slot.text)) - FUNCTION_WORDS) & said
    return min(limits.asked, 1) if elsewhere else limits.asked


def _keeps_the_question(intent: Intent, plan: Plan, text: str, most: int) -> bool:
    """Whether at most `most` words of an asking clause are lost, and few of the sentence in front of it; but
    no name, number or negation, and no word that asks another kind than treatment, the first one.
    """
    keys = frozenset(word_keys(text))
    lost = [w for w in intent.content - keys if not any(CUES[k].fullmatch(w) for k in plan.kinds)]
    sure = [intent.kept.names[0].text] if intent.kept.sure else []
    return (
        len(lost) <= most
        and not any(c.fullmatch(w) for w in lost for c in CUES[1:])
        and len(intent.lead - keys) <= _LEAD_LOST
        and _names_all([*intent.terms, *sure], keys)
        and intent.numbers <= set(NUMBER.findall(text))
        and set(_ROMAN.findall(intent.clause)) <= set(_ROMAN.findall(text))
        and (not intent.negated or NEGATION.search(text) is not None)
    )


def _keeps_the_statement(intent: Intent, plan: Plan, keys: frozenset[str], limits: Limits) -> bool:
    """Whether a message that does not ask certainly means this kind, and loses few words; any number if the
    name that its sentence lacks is certain.
    """
    first = plan.kinds[0]
    if intent.kinds[first] < limits.stated_kind:
        return False
    helps = intent.kinds[first] >= limits.helping or _STRONG.search(intent.message.text)
    if KINDS[first] == "treatment" and not helps:
        return False
    if _INFORMATION.search(intent.clause) and INFORMATION not in plan.kinds:
        return False
    lost = [w for w in intent.content - keys if not any(cue.fullmatch(w) for cue in CUES)]
    without = _WITHOUT.search(intent.clause) is not None and not keys & {"without", "no", "not"}
    if without or any(_CODE.fullmatch(w) for w in lost):
        return False
    return intent.kept.sure or (len(lost) <= limits.stated and _names_all(intent.terms, keys))


def _names_all(names: Sequence[str], keys: frozenset[str]) -> bool:
    """Whether an answer has at least one word of each name."""
    return all(set(word_keys(name)) & keys for name in names)
