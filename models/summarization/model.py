"""The short question of a long one: written by a decoder if the release has one, else extracted from it.

A written summary is accepted only if the text names every drug and every condition of the summary. Where no
hypothesis is accepted, the answer is extracted from the text, and the record says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter

from models.encoder.model import Encoder, encoder_of
from models.releases.manifest import Release
from models.summarization.files import CHANGED, FOCUS_RANKER
from models.summarization.medical_entities import OwnRecogniser, named_in
from models.summarization.sentence_selection import candidate_sentences
from models.summarization.unasked import asks_nothing, without_quotes
from models.types import ShortQuestion

if TYPE_CHECKING:
    from models.summarization.decoder import Summary, Writer
    from models.summarization.extraction.extractor import Extractor

NOTHING_ASKED = ShortQuestion("", "extractive", 0.0)


class SummarizationModel:
    """A writer whose summaries are checked, and the extractive answer: that of a trained extractor. Where a
    release has none, it is the sentence nearest to the whole text, of those that are questions if any is.
    """

    task = "summarization"

    def __init__(
        self,
        encoder: Encoder,
        writer: Writer | None = None,
        recogniser: OwnRecogniser | None = None,
        extractor: Extractor | None = None,
    ) -> None:
        """`encoder` gives the sentence vectors: a base model. Without a writer all answers are extractive; a
        writer needs a `recogniser`, else ValueError.
        Without an `extractor` an extractive answer is a whole sentence.
        """
        if writer is not None and recogniser is None:
            raise ValueError("a writer needs a recogniser: the entities of a summary must be recognised")
        self.encoder, self.writer = encoder, writer
        self.recogniser, self.extractor = recogniser, extractor

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> SummarizationModel:
        """Imports only the modules of the parts that the manifest names. Raises ReleaseError when base and
        files do not fit each other.
        """
        if CHANGED not in release.manifest.files:
            encoder = encoder_of(release, device=device, dtype=dtype)
            return cls(encoder, extractor=_extractor(release, encoder))
        from models.summarization.decoder import Decoder  # noqa: PLC0415

        recogniser = OwnRecogniser.load(release, device=device, dtype=dtype)
        base, max_pieces = (release.manifest.configuration[k] for k in ("sentence_base", "max_pieces"))
        encoder = Encoder.for_inference(base, device=device, dtype=dtype, max_pieces=max_pieces)
        return cls(encoder, Decoder.load(release, device, dtype), recogniser)

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
        """One short question for each text; `method` is "abstractive" if a decoder wrote it, else
        "extractive". What a message quotes is not read; it is empty for one that asks nothing.
        """
        own = [without_quotes(text) for text in batch]
        asking = [message for message in own if not asks_nothing(message.text)]
        answers = iter(self._answers([message.text for message in asking]))
        read = set(map(id, asking))
        return [m.written(next(answers)) if id(m) in read else NOTHING_ASKED for m in own]

    def _answers(self, batch: Sequence[str]) -> list[ShortQuestion]:
        if self.writer is None or not batch:
            return self.extract(batch)
        accepted = self._accepted(batch, self.writer.write(batch))
        rest = [i for i, summary in enumerate(accepted) if summary is None]
        extracted = dict(zip(rest, self.extract([batch[i] for i in rest]), strict=True))
        return [
            extracted[i] if summary is None else ShortQuestion(summary.text, "abstractive", summary.score)
            for i, summary in enumerate(accepted)
        ]

    def _accepted(self, batch: Sequence[str], written: Sequence[Sequence[Summary]]) -> list[Summary | None]:
        """The first summary of each text that names no entity that the text does not."""
        assert self.recogniser is not None
        accepted: list[Summary | None] = [None] * len(batch)
        waiting = [i for i, summaries in enumerate(written) if summaries]
        for rank in range(max((len(w) for w in written), default=0)):
            checked = [i for i in waiting if rank < len(written[i])]
            entities = self.recogniser.entities([written[i][rank].text for i in checked])
            for i, own in zip(checked, entities, strict=True):
                summary = written[i][rank]
                all_named = all(named_in(e.text, batch[i], self.recogniser.drugs) for e in own)
                if summary.text and all_named:
                    accepted[i] = summary
            waiting = [i for i in checked if accepted[i] is None]
        return accepted

    def extract(self, batch: Sequence[str]) -> list[ShortQuestion]:
        """The answer of the extractor; without one, one sentence of each text, verbatim, with its offsets and
        its cosine to the whole text.
        """
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
