"""The kinds of question that a written short question asks, by its words."""

from __future__ import annotations

import re

from models.summarization.editing.openings import KINDS

_PATTERNS = {
    "treatment": r"\btreat(?!s\b)\w*|\btratment|\bcure[ds]?\b|\bremed|therap(?:y|ies)\b|medicines? for|"
    r"what helps|help (?:with|for)\b|get rid|relie[fv]",
    "information": r"\bwhere can i (?:find|get|learn)\b(?!.*clinical trial)|^what is (?!the\b)[\w' ()-]+\?$|"
    r"information (?:on|about)",
    "cause": r"^(?!(?:can|could|does|do|is|are|may|how can)\b).*\bcauses?\b|\bwhy\b",
    "specialist": r"physician|specialist\(|specializ|hospital\(s\)|find a? ?(?:doctor|specialist|dentist)",
    "who_to_see": r"(?:which|what) (?:specialist|doctor)|(?:kind|type) of (?:doctor|specialist)",
    "prognosis": r"prognosis|life expectancy|how long do people|survival|outlook|long[- ]term",
    "diagnosis": r"diagnos|\btests?\b(?! result)|tested",
    "inheritance": r"inherit|hereditary|run in famil|pass(?:ed)? (?:it )?(?:on|down)",
    "symptoms": r"symptoms|signs of",
    "side_effects": r"side effects?|adverse",
    "ingredients": r"ingredient|contain",
    "gluten": r"gluten",
    "research": r"research|latest",
    "trials": r"clinical trial|clinical stud",
    "complications": r"complication|risks? of|dangers?\b",
}
_COMPILED = [re.compile(_PATTERNS[kind], re.IGNORECASE) for kind in KINDS]


def gold_kinds(summary: str) -> list[bool]:
    """For each of KINDS whether a short question asks it."""
    flat = " ".join(summary.split())
    return [p.search(flat) is not None for p in _COMPILED]
