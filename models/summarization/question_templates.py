"""Short questions from a list of questions with one place: the kind that is expected to say most of what was
asked, about the first things of medicine that the text names.

Summaries of consumer questions repeat a few forms ("What are the treatments for ...?"). What a form is worth
for a text is a ridge regression over the text's vector and the cue words in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from models.encoder.model import Encoder
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.summarization.generation import Written
from models.summarization.medical_entities import Entity, Recogniser, normal
from models.summarization.question_cues import CUES, PLACE
from models.tables import read_tsv

FORMS, WORTH = "forms.tsv", "forms.safetensors"
#: Words of a subject line that may stand in a form.
LONGEST_TITLE = 6
_SUBJECT = re.compile(r"\s*subject\s*:\s*([^\n]*?)\s*(?:\n|message\s*:|$)", re.IGNORECASE)
_CUES = tuple(re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words, _ in CUES if words)


class TemplateWriter:
    """The forms of a release and what each is worth."""

    def __init__(
        self, encoder: Encoder, recogniser: Recogniser, forms: Sequence[str], weights: Tensor
    ) -> None:
        """`weights` (features, forms), see `features`; raises ValueError where the two do not fit."""
        if weights.shape != (encoder.dimension + len(_CUES) + 1, len(forms)):
            raise ValueError(f"weights {tuple(weights.shape)} for {len(forms)} forms")
        self.encoder, self.recogniser, self.forms, self.weights = encoder, recogniser, list(forms), weights

    @classmethod
    def load(cls, release: Release, encoder: Encoder, recogniser: Recogniser) -> TemplateWriter:
        """Raises ReleaseError where forms and weights do not fit together."""
        forms = [row[0] for row in read_tsv(release.file(FORMS), ("form",))]
        try:
            return cls(encoder, recogniser, forms, read_tensors(release.file(WORTH))["worth"].float())
        except (KeyError, ValueError) as error:
            raise ReleaseError(f"{release.version}: {WORTH}: {error}") from None

    def write(self, texts: Sequence[str]) -> list[list[Written]]:
        """The three best forms about the first two entities of each text, best first; the score is the share
        of words that a form is expected to have right. Nothing for a text that is about nothing.
        """
        if not texts:
            return []
        worth = features(self.encoder, texts) @ self.weights
        return [
            filled(self.forms, row.tolist(), subjects(text, found))
            for text, row, found in zip(texts, worth, self.recogniser.entities(texts), strict=True)
        ]

    @staticmethod
    def save(forms: Sequence[str], folder: Path) -> None:
        (folder / FORMS).write_text("\n".join(["form", *forms]) + "\n", encoding="utf-8")


def subjects(text: str, entities: Sequence[Entity]) -> list[str]:
    """What a text may be about: its first two entities, its subject line where it has none, or nothing."""
    found = [e.text for e in distinct(entities)[:2]]
    line = _SUBJECT.match(text)
    title = line.group(1).strip(" ?.!:-") if line else ""
    return found or ([title] if 0 < len(title.split()) <= LONGEST_TITLE else [])


def filled(forms: Sequence[str], worth: Sequence[float], about: Sequence[str]) -> list[Written]:
    """The three forms that are worth most about each subject; a later one stands behind all of an earlier."""
    best = sorted(range(len(forms)), key=lambda i: (-worth[i], i))[:3]
    return [
        Written(forms[i].replace(PLACE, a), round(min(1.0, max(0.0, worth[i])), 4))
        for a in about
        for i in best
    ]


def distinct(entities: Sequence[Entity]) -> list[Entity]:
    """Each entity once, where it is named first."""
    first: dict[tuple[str, ...], Entity] = {}
    for e in entities:
        first.setdefault(tuple(normal(e.text)), e)
    return list(first.values())


def features(encoder: Encoder, texts: Sequence[str]) -> Tensor:
    """(texts, dimension + cues + 1): unit vector, whether each kind of cue word is there, and one."""
    cues = torch.tensor([[float(c.search(t) is not None) for c in _CUES] for t in texts])
    return torch.cat([encoder.embed(texts).cpu(), cues, torch.ones(len(texts), 1)], 1)
