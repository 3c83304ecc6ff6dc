"""Short questions from templates with one slot, filled with the first medical entities of the text.

Summaries of consumer questions repeat a few templates ("What are the treatments for ...?"). The weight of a
template for a text is predicted by a ridge regression from the text's vector and its cue words.
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
from models.summarization.decoding.generation import Summary
from models.summarization.medical_entities import Entity, Recogniser, word_keys
from models.summarization.question_cues import CUES, SLOT
from models.tables import read_tsv

TEMPLATES, TEMPLATE_WEIGHTS = "forms.tsv", "forms.safetensors"
#: Templates that are filled for each subject, and subjects of a text.
_BEST, _SUBJECTS = 3, 2
#: Words of a subject line that may be inserted into a template.
_LONGEST_TITLE = 6
_SUBJECT = re.compile(r"\s*subject\s*:\s*([^\n]*?)\s*(?:\n|message\s*:|$)", re.IGNORECASE)
_CUES = tuple(re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words, _ in CUES if words)


class TemplateWriter:
    """Writes with the templates of a release and their regression weights."""

    def __init__(
        self, encoder: Encoder, recogniser: Recogniser, templates: Sequence[str], weights: Tensor
    ) -> None:
        """`weights`: (features, templates), see `features`; raises ValueError where the shape is another."""
        if weights.shape != (encoder.dimension + len(_CUES) + 1, len(templates)):
            raise ValueError(f"weights of shape {tuple(weights.shape)} for {len(templates)} templates")
        self.encoder, self.recogniser = encoder, recogniser
        self.templates, self.weights = list(templates), weights

    @classmethod
    def load(cls, release: Release, encoder: Encoder, recogniser: Recogniser) -> TemplateWriter:
        """Raises ReleaseError where templates and weights do not fit each other."""
        templates = [row[0] for row in read_tsv(release.file(TEMPLATES), ("form",))]
        try:
            weights = read_tensors(release.file(TEMPLATE_WEIGHTS))["worth"].float()
            return cls(encoder, recogniser, templates, weights)
        except (KeyError, ValueError) as error:
            raise ReleaseError(f"{release.version}: {TEMPLATE_WEIGHTS}: {error}") from None

    def write(self, texts: Sequence[str]) -> list[list[Summary]]:
        """The three best templates about the first two entities of each text, best first; none for a text
        without entity and subject line. The score is the predicted F1 of words with the right summary.
        """
        if not texts:
            return []
        scores = features(self.encoder, texts) @ self.weights
        return [
            fill(self.templates, row.tolist(), subjects(text, entities))
            for text, row, entities in zip(texts, scores, self.recogniser.entities(texts), strict=True)
        ]

    @staticmethod
    def save(templates: Sequence[str], folder: Path) -> None:
        """Writes the table of templates of a release."""
        (folder / TEMPLATES).write_text("\n".join(["form", *templates]) + "\n", encoding="utf-8")


def subjects(text: str, entities: Sequence[Entity]) -> list[str]:
    """What a text may be about: its first two entities; without entities its subject line, unless it is too
    long; or nothing.
    """
    first = [e.text for e in distinct_entities(entities)[:_SUBJECTS]]
    line = _SUBJECT.match(text)
    title = line.group(1).strip(" ?.!:-") if line else ""
    return first or ([title] if 0 < len(title.split()) <= _LONGEST_TITLE else [])


def fill(templates: Sequence[str], scores: Sequence[float], about: Sequence[str]) -> list[Summary]:
    """The three templates with the highest scores filled with each subject, all of an earlier subject first;
    scores are limited to 0 to 1.
    """
    best = sorted(range(len(templates)), key=lambda i: (-scores[i], i))[:_BEST]
    return [
        Summary(templates[i].replace(SLOT, subject), round(min(1.0, max(0.0, scores[i])), 4))
        for subject in about
        for i in best
    ]


def distinct_entities(entities: Sequence[Entity]) -> list[Entity]:
    """The first mention of each entity."""
    first: dict[tuple[str, ...], Entity] = {}
    for entity in entities:
        first.setdefault(tuple(word_keys(entity.text)), entity)
    return list(first.values())


def features(encoder: Encoder, texts: Sequence[str]) -> Tensor:
    """(texts, dimension + cues + 1): the text's unit vector, whether it has each type of cue word, and 1."""
    cues = torch.tensor([[float(c.search(t) is not None) for c in _CUES] for t in texts])
    return torch.cat([encoder.embed(texts).cpu(), cues, torch.ones(len(texts), 1)], 1)
