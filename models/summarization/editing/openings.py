"""The closed set of openings of edited questions.

An opening belongs to a kind of question, and its slot is filled with a part of the message.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from models.summarization.editing.clause import is_plural

#: Where the subject of the question is inserted into an opening.
SLOT = "{}"


class Opening(NamedTuple):
    """The wording of a kind of question."""

    kind: str
    question: str
    """the question, with SLOT"""
    further: str
    """the same as a second question, about the same thing"""
    cue: str
    """a pattern of words that ask this kind"""


OPENINGS = (
    Opening(
        "treatment",
        "What are the treatments for {}?",
        "what are the treatments for it",
        r"treat\w*|cur(?:e|es|ed|ing|able)|remed\w+|relie\w+|get rid|medicines?|medications?|ointment|"
        r"therap\w+|surger\w+|what helps|remove|heal|overcome|fix(?:ed)?|help|"
        r"what (?:can|should|could|do) (?:i|we|he|she) (?:do|take|use)",
    ),
    Opening(
        "information",
        "Where can I find information on {}?",
        "where can I find information on it",
        r"info|informations?|learn|know (?:more|everything|all)|details?|literature|articles?|brochures?|"
        r"books?|pam\w+ets?|leaflets?|materials?|resources?",
    ),
    Opening(
        "cause",
        "What causes {}?",
        "what causes it",
        r"caus\w+|why|reasons?|due to|brings?|from what|come from",
    ),
    Opening(
        "specialist",
        "How can I find physician(s) who specialize in {}?",
        "how can I find physician(s) who specialize in it",
        r"doctors?|physicians?|specialists?|hospitals?|clinics?|surgeons?|cent(?:er|re)s?|experts?|referr?\w*",
    ),
    Opening(
        "who_to_see",
        "What kind of doctor treats {}?",
        "what kind of doctor treats it",
        r"(?:kind|type|sort) of (?:doctor|specialist|physician)|(?:which|what) (?:doctor|specialist)|"
        r"who (?:do|should|can|would) (?:i|we|he|she) see|see (?:a|an)|who treats",
    ),
    Opening(
        "prognosis",
        "What is the prognosis for {}?",
        "what is the prognosis for it",
        r"prognosis|life expectancy|surviv\w+|long term|live|outlook|die|fatal|terminal|expect",
    ),
    Opening(
        "diagnosis",
        "How is {} diagnosed?",
        "how is it diagnosed",
        r"tests?|testing|tested for|diagnos(?:e|is|ing)|how (?:[\w'-]+ ){1,4}diagnosed|detect\w*|know if",
    ),
    Opening(
        "inheritance",
        "Is {} inherited?",
        "is it inherited",
        r"inherit\w*|heredit\w+|(?:it|this|that|be) genetic|pass(?:ed)? (?:it |this |that )?(?:on|down)|"
        r"carriers?|runs? in|handed",
    ),
    Opening(
        "symptoms",
        "What are the symptoms of {}?",
        "what are its symptoms",
        r"symptoms?|signs?",
    ),
    Opening(
        "side_effects",
        "What are the side effects of {}?",
        "what are its side effects",
        r"side ?-?(?:e|a)ffects?|adverse|reactions?",
    ),
    Opening(
        "ingredients",
        "What are the ingredients of {}?",
        "what are its ingredients",
        r"ingredients?|contain\w*|made (?:of|from)",
    ),
    Opening(
        "gluten",
        "What are the ingredients of {} and is it gluten free?",
        "is it gluten free",
        r"gluten",
    ),
    Opening(
        "research",
        "What is the latest research on {}?",
        "what is the latest research on it",
        r"research|stud(?:y|ies)|latest|news?|advances?",
    ),
    Opening(
        "trials",
        "Where can I find clinical trials for {}?",
        "where can I find clinical trials for it",
        r"trials?",
    ),
    Opening(
        "complications",
        "What are the complications of {}?",
        "what are its complications",
        r"complications?|risks?|dangers?|dangerous|harm\w*",
    ),
)
KINDS = tuple(o.kind for o in OPENINGS)
INFORMATION = KINDS.index("information")
#: Kinds whose questions include each other.
CONTENTS = frozenset((KINDS.index("ingredients"), KINDS.index("gluten")))
#: The pattern of the cue of each opening.
CUES = tuple(re.compile(rf"\b(?:{o.cue})\b", re.IGNORECASE) for o in OPENINGS)
_IS = re.compile(r"^(?:Is|How is) (?=\{)")
#: Topics of a question for information: the noun, the kind that asks the same, and words that ask for it.
LISTED = tuple(
    (noun, kind, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for noun, kind, words in (
        ("causes", "cause", r"causes?"),
        ("symptoms", "symptoms", r"symptoms?|signs"),
        ("diagnosis", "diagnosis", r"diagnosis|detection"),
        ("tests", "diagnosis", r"tests(?! (?:his|her|my|positive))|testing|test for"),
        ("treatments", "treatment", r"treatments?|treat|treated|cures?|therap(?:y|ies)"),
        (
            "prognosis",
            "prognosis",
            # Not "long-term use" of a medicine.
            r"prognosis|life expectancy|outlook|"
            r"long[- ]term(?! (?:us\w+|therap\w+|treat\w+|tak\w+|medic\w+|side|adverse|steroids?))",
        ),
        ("inheritance", "inheritance", r"inheritance|inherited|hereditary|purely genetic"),
        ("prevention", "", r"prevent|prevention"),
        ("side effects", "side_effects", r"side ?-?effects?"),
        ("risks", "complications", r"risks?|complications?"),
        ("cost", "", r"costs?|price"),
        ("support groups", "", r"support groups?"),
        ("recovery", "", r"recovery"),
        ("the latest research", "research", r"research|studies"),
    )
)


def listed(clause: str) -> tuple[str, ...]:
    """The nouns of LISTED that a clause asks about, in the order of its words."""
    found = [(m.start(), noun) for noun, _, pattern in LISTED if (m := pattern.search(clause))]
    return tuple(noun for _, noun in sorted(found))


def all_asked(nouns: tuple[str, ...], kinds: tuple[int, ...]) -> bool:
    """Whether these kinds of question ask about all of these nouns of LISTED."""
    asked = {KINDS[k] for k in kinds}
    return all(kind in asked for noun, kind, _ in LISTED if noun in nouns)


class Plan(NamedTuple):
    """The kinds of question, and nouns, that an edited question asks about its slot."""

    kinds: tuple[int, ...]
    """one kind or two, as places in OPENINGS"""
    nouns: tuple[str, ...]
    """nouns of LISTED, for a question for information; empty for other kinds"""

    def worded(self, slot: str) -> str:
        """The question about a slot."""
        question = OPENINGS[self.kinds[0]].question
        if is_plural(slot):
            question = _IS.sub(lambda m: m[0].replace("Is", "Are").replace("is", "are"), question)
        question = question.replace(SLOT, slot)
        if self.nouns:
            *front, last = self.nouns
            return f"{question[:-1]}, including {', '.join(front)}{',' if front[1:] else ''} and {last}?"
        if len(self.kinds) > 1:
            return f"{question[:-1]}, and {OPENINGS[self.kinds[1]].further}?"
        return question
