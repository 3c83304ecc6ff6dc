"""Scores of summaries without the recogniser of the guard: what an answer names by plain string match, and
how near its vector is to that of the reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from models.scores import Counts

if TYPE_CHECKING:
    from models.encoder.model import Encoder

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nor|nothing|without|cannot|(?:do|does|did|is|are|was|were|ca|wo)nt)\b|"
    r"n['\u2019]t\b",
    re.IGNORECASE,
)


def inventions(answers: Sequence[str], texts: Sequence[str]) -> Counts:
    """(texts, 1): 1 where an answer has a name of the terminology or of the drug lexicon, a number, or a
    negation that its text does not have.
    """
    from models.lexicon import NameLexicon  # noqa: PLC0415  read only where it is needed
    from models.summarization.medical_entities import OwnRecogniser, named_in  # noqa: PLC0415

    lexicons = OwnRecogniser.bundled(None)

    def invents(answer: str, text: str) -> bool:
        found: Sequence[NameLexicon] = (lexicons.terms, lexicons.drugs)
        names = [answer[s.start : s.end] for lexicon in found for s, _ in lexicon.find(answer)]
        return (
            any(not named_in(name, text, lexicons.drugs) for name in names)
            or not set(_NUMBER.findall(answer)) <= set(_NUMBER.findall(text))
            or (_NEGATION.search(answer) is not None and _NEGATION.search(text) is None)
        )

    rows = [invents(answer, text) for answer, text in zip(answers, texts, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 1)


def similarities(answers: Sequence[str], references: Sequence[str]) -> Counts:
    """(texts, 1): the cosine of the vectors of answer and reference by the base encoder."""
    encoder = _encoder()
    cosines = (encoder.embed(answers) * encoder.embed(references)).sum(1, keepdim=True)
    return np.asarray(cosines.double().numpy(), np.float64)


@cache
def _encoder() -> Encoder:
    """The base encoder, which nothing changes; loaded once for all scores."""
    from models.encoder.base_files import MINI  # noqa: PLC0415
    from models.encoder.model import Encoder  # noqa: PLC0415  a model library

    return Encoder.load(MINI, max_pieces=256)
