"""The short question of a long one, extracted from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter

from models.encoder.model import Encoder, encoder_of
from models.releases.manifest import Release, ReleaseError
from models.summarization.extraction.ranker import FOCUS_RANKER
from models.summarization.sentence_selection import candidate_sentences
from models.summarization.unasked import asks_nothing, without_quotes
from models.types import ShortQuestion

if TYPE_CHECKING:
    from models.summarization.extraction.extractor import Extractor

#: The weights of a decoder.
WRITTEN = "changed.safetensors"
NOTHING_ASKED = ShortQuestion("", "extractive", 0.0)


class SummarizationModel:
    """The answer of a trained extractor. Where a release has none, it is the sentence nearest to the whole
    text, of those that are questions if any is.
    """

    task = "summarization"

    def __init__(self, encoder: Encoder, extractor: Extractor | None = None) -> None:
        """`encoder` gives the sentence vectors: a base model."""
        self.encoder, self.extractor = encoder, extractor

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> SummarizationModel:
        """Imports only the modules of the parts that the manifest names. Raises ReleaseError when base and
        files do not fit each other, and for a release that writes, which is measured and not served.
        """
        if WRITTEN in release.manifest.files:
            raise ReleaseError(f"{release.version}: what a decoder writes is not served")
        encoder = encoder_of(release, device=device, dtype=dtype)
        return cls(encoder, _extractor(release, encoder))

    @staticmethod
    def is_answered(stored: Any) -> bool:
        """Whether a manifest's answer can be given today: an edited one cannot. Of 120 real messages whose
        answers an editor changed, 85 were asked rightly without it and 69 with it; its files are not read.
        """
        return not (isinstance(stored, dict) and stored.get("method") == "edited")

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[ShortQuestion]:
        """Short questions from a manifest's JSON values, whose missing fields get their defaults."""
        return TypeAdapter(list[ShortQuestion]).validate_python(stored)

    def predict(self, batch: Sequence[str]) -> list[ShortQuestion]:
        """One short question for each text. What a message quotes is not read; it is empty for one that asks
        nothing.
        """
        own = [without_quotes(text) for text in batch]
        asking = [message for message in own if not asks_nothing(message.text)]
        answers = iter(self.extract([message.text for message in asking]))
        read = set(map(id, asking))
        return [m.written(next(answers)) if id(m) in read else NOTHING_ASKED for m in own]

    def extract(self, batch: Sequence[str]) -> list[ShortQuestion]:
        """The extractor's answer, else one sentence of each text with its cosine to the whole text."""
        if self.extractor is not None:
            return self.extractor.extract(batch)
        spans = [candidate_sentences(text) for text in batch]
        texts = [
            t
            for text, own in zip(batch, spans, strict=True)
            for t in (text, *(text[s.start : s.end] for s in own))
        ]
        vectors = self.encoder.embed(texts)
        out, whole = [], 0
        for text, own in zip(batch, spans, strict=True):
            end = whole + 1 + len(own)
            cosines = (vectors[whole + 1 : end] @ vectors[whole]).tolist()
            whole = end
            best = max(range(len(own)), key=cosines.__getitem__)
            span = own[best]
            sentence = text[span.start : span.end]
            out.append(ShortQuestion(sentence, "extractive", round(cosines[best], 4), span.start, span.end))
        return out


def _extractor(release: Release, encoder: Encoder) -> Extractor | None:
    """None where the release has no rankers."""
    if FOCUS_RANKER not in release.manifest.files:
        return None
    from models.summarization.extraction.extractor import Extractor  # noqa: PLC0415

    return Extractor.load(release, encoder)
