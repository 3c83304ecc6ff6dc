"""Which acronyms are read as their long forms: those that name a drug or an adverse event."""

from __future__ import annotations

from collections.abc import Sequence

from models.drugs import bundled_lexicon
from models.terminology import term_at_end
from models.types import Expansion

#: The system organ class of what is done to a patient ("liver transplantation").
_PROCEDURES = "Surgical and medical procedures"


def naming(expansions: Sequence[Expansion]) -> list[Expansion]:
    """The expansions whose long form is a drug, or ends with the name of an adverse event. Others ("patient",
    "international normalized ratio") make a sentence longer and unlike those that were trained on.
    """
    return [e for e in expansions if _names_event(e.long_form) or bundled_lexicon().generic(e.long_form)]


def _names_event(long_form: str) -> bool:
    term = term_at_end(long_form)
    return term is not None and term.soc != _PROCEDURES
