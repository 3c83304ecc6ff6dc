"""The short question in a long one. This release kind is extractive: it picks a sentence and invents
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from models.encoder import Encoder, encoder_of
from models.release import Release
from models.text import sentences
from models.types import ShortQuestion, Span

_ASKS = re.compile(
    r"^(?:who|whom|whose|what|when|where|why|which|how|is|are|am|was|were|do|does|did|can|could|should|shall|"
    r"will|would|may|might|has|have|had|any(?:one|body)?)\b",
    re.IGNORECASE,
)
_FIELD = re.compile(r"^\s*(?:subject|message|question|re)\s*:\s*", re.IGNORECASE)


class SummarizationModel:
    """Of the sentences that ask, the one nearest to the whole text; of all sentences where none asks."""

    task = "summarization"

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> SummarizationModel:
        return cls(encoder_of(release, device=device, dtype=dtype))

    def predict(self, batch: Sequence[str]) -> list[ShortQuestion]:
        """One sentence of each text, verbatim, with its offsets and its cosine to the whole."""
        spans = [candidates(text) for text in batch]
        texts = [
            t
            for text, found in zip(batch, spans, strict=True)
            for t in (text, *(text[s.start : s.end] for s in found))
        ]
        vectors = self.encoder.embed(texts)
        out, at = [], 0
        for text, found in zip(batch, spans, strict=True):
            similarity = (vectors[at + 1 : at + 1 + len(found)] @ vectors[at]).tolist()
            at += 1 + len(found)
            best = max(range(len(found)), key=similarity.__getitem__)
            span = found[best]
            sentence = text[span.start : span.end]
            out.append(
                ShortQuestion(sentence, "extractive", round(similarity[best], 4), span.start, span.end)
            )
        return out


def candidates(text: str) -> list[Span]:
    """Sentences that ask, without the field names of a mail form; all sentences where none does; never
    empty.
    """
    cut = (_without_field(text, s) for s in sentences(text))
    every = [s for s in cut if s is not None] or [Span(0, len(text))]
    return [s for s in every if asks(text[s.start : s.end])] or every


def asks(sentence: str) -> bool:
    """Whether a sentence ends with a question mark or begins as a question does."""
    return sentence.rstrip("\"') ").endswith("?") or _ASKS.match(sentence) is not None


def _without_field(text: str, sentence: Span) -> Span | None:
    name = _FIELD.match(text[sentence.start : sentence.end])
    start = sentence.start + (name.end() if name else 0)
    return Span(start, sentence.end) if start < sentence.end else None
