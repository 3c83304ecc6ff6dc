"""Baselines of summarization without training: the central sentence, and a template for the kind of
question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from models.summarization.question_cues import CUES, SLOT
from models.text import sentences

if TYPE_CHECKING:
    from models.summarization.medical_entities import Entity


def centroid_sentence(text: str) -> str:
    """The sentence whose word counts have the greatest cosine with the counts of the whole text; the first of
    equals; empty for a text without words.
    """
    found = [text[s.start : s.end] for s in sentences(text)]
    bags = [Counter(re.findall(r"\w+", s.lower())) for s in found]
    whole: Counter[str] = sum(bags, Counter())

    def cosine(bag: Counter[str]) -> float:
        length = math.sqrt(sum(n * n for n in bag.values()))
        return sum(n * whole[word] for word, n in bag.items()) / length if length else 0.0

    best = max(range(len(found)), key=lambda i: cosine(bags[i]), default=None)
    return "" if best is None else found[best]


def template(text: str, entities: Sequence[Entity]) -> str:
    """The template of the text's kind of question, filled with its first entity, or with its first three
    words where it has none.
    """
    lower = text.lower()
    question = next(t for words, t in CUES if not words or re.search(rf"\b(?:{words})\b", lower))
    about = (
        entities[0].text
        if entities
        else " ".join(re.sub(r"^\s*subject\s*:", "", text, flags=re.I).split()[:3])
    )
    return question.replace(SLOT, about)
