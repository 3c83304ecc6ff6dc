"""A baseline of summarization without training: a template for the kind of question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.summarization.medical_entities import Entity

#: A pattern of cue words and the template of their kind of question; the last one is for texts without any.
CUES = (
    (r"side effects?|adverse", "What are the side effects of {}?"),
    (r"ingredients?|gluten|contain", "What are the ingredients of {}?"),
    (r"interact\w*|together with", "What drugs interact with {}?"),
    (r"prognosis|life expectancy|survive|long term", "What is the prognosis for {}?"),
    (r"inherit\w*|hereditary|genetic\w*", "Is {} inherited?"),
    (r"diagnos\w+ of|how .{0,20}diagnosed|tests? for", "How is {} diagnosed?"),
    (r"specialists?|doctors? who|physicians? who", "How can I find physician(s) who specialize in {}?"),
    (r"treat\w*|cure\w*|remed\w+|medicines? for|medications? for|help", "What are the treatments for {}?"),
    (r"causes?|caused|why", "What are the causes of {}?"),
    (r"symptoms?|signs? of", "What are the symptoms of {}?"),
    (r"", "Where can I find information on {}?"),
)


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
    return question.format(about)
