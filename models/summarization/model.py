"""The short question in a long one: written by a decoder where the release has one, else a sentence of it.

What is written is taken only if every drug and condition that it names stands in the question; where none of
the hypotheses is so, the best sentence of the question is the answer, word for word, and the record says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from models.encoder.model import Encoder, encoder_of
from models.encoder.weights import base_digest, resolve_base
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.summarization.beam_search import Search
from models.summarization.generation import HubWriter, PointerWriter, Writer, Written, pieces_of
from models.summarization.medical_entities import OwnRecogniser, named_in, normal
from models.summarization.pointer_decoder import Pointer, Shape, embeddings_of
from models.summarization.question_templates import FORMS, TemplateWriter
from models.summarization.reranker import RankedWriter
from models.tables import read_tsv
from models.text import sentences
from models.types import ShortQuestion, Span

#: The pointer decoder; the changed layers of an encoder-decoder of the hub.
DECODER, CHANGED = "decoder.safetensors", "changed.safetensors"
#: Words of the training summaries, without the s of a plural.
WORDS = "words.tsv"
_ASKS = re.compile(
    r"^(?:who|whom|whose|what|when|where|why|which|how|is|are|am|was|were|do|does|did|can|could|should|shall|"
    r"will|would|may|might|has|have|had|any(?:one|body)?)\b",
    re.IGNORECASE,
)
_FIELD = re.compile(r"^\s*(?:subject|message|question|re)\s*:\s*", re.IGNORECASE)


class SummarizationModel:
    """A writer with its guard, and the extractive answer: of the sentences that ask, the one nearest to the
    whole text; of all sentences where none asks.
    """

    task = "summarization"

    def __init__(
        self,
        encoder: Encoder,
        writer: Writer | None = None,
        recogniser: OwnRecogniser | None = None,
        known: frozenset[str] | None = None,
    ) -> None:
        """`encoder` gives sentence vectors: a base as it is. Without a writer all answers are extractive.

        `known` are the words that may be written though the text does not have them; None: all. A decoder of
        word pieces can put together a word that is none, which no recogniser takes for an entity.
        """
        if writer is not None and recogniser is None:
            raise ValueError("what a writer names must be recognised")
        self.encoder, self.writer, self.recogniser, self.known = encoder, writer, recogniser, known

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> SummarizationModel:
        """Raises ReleaseError when base and files do not fit together."""
        files, settings = release.manifest.files, release.manifest.configuration
        if DECODER not in files and CHANGED not in files:
            return cls(encoder_of(release, device=device, dtype=dtype))
        recogniser = OwnRecogniser.load(release, device=device, dtype=dtype)
        sentence_base = settings["sentence_base"]
        plain = Encoder.load(sentence_base, device=device, dtype=dtype, max_pieces=settings["max_pieces"])
        search = Search(**settings["search"])
        known = None
        if WORDS in files:
            known = frozenset(row[0] for row in read_tsv(release.file(WORDS), ("word",)))
        writer: Writer
        if CHANGED in files:
            writer = hub_writer(release, search, device, dtype)
        else:
            pointer = writer = pointer_writer(release, search, device, dtype)
            if FORMS in files:
                forms = TemplateWriter.load(release, plain, recogniser)
                weights = settings["ranker"]
                writer = RankedWriter(pointer, forms, weights) if weights else forms
        return cls(plain, writer, recogniser, known)

    def predict(self, batch: Sequence[str]) -> list[ShortQuestion]:
        """One short question for each text; `method` says whether it was written or is a sentence of it."""
        if self.writer is None or not batch:
            return self.extract(batch)
        taken = self._faithful(batch, self.writer.write(batch))
        rest = [i for i, one in enumerate(taken) if one is None]
        sentences_ = dict(zip(rest, self.extract([batch[i] for i in rest]), strict=True))
        return [
            sentences_[i] if one is None else ShortQuestion(one.text, "abstractive", one.score)
            for i, one in enumerate(taken)
        ]

    def _faithful(self, batch: Sequence[str], written: Sequence[Sequence[Written]]) -> list[Written | None]:
        """The first hypothesis of each text that names nothing that the text does not."""
        assert self.recogniser is not None
        taken: list[Written | None] = [None] * len(batch)
        waiting = [i for i, found in enumerate(written) if found]
        for rank in range(max((len(w) for w in written), default=0)):
            asked = [i for i in waiting if rank < len(written[i])]
            found = self.recogniser.entities([written[i][rank].text for i in asked])
            for i, entities in zip(asked, found, strict=True):
                text = written[i][rank].text
                same = all(named_in(e.text, batch[i], self.recogniser.drugs) for e in entities)
                if text and same and self._of_words(text, batch[i]):
                    taken[i] = written[i][rank]
            waiting = [i for i in asked if taken[i] is None]
        return taken

    def _of_words(self, summary: str, text: str) -> bool:
        """Whether every word of a summary is one of the text or a known one."""
        return self.known is None or set(normal(summary)) <= self.known | set(normal(text))

    def extract(self, batch: Sequence[str]) -> list[ShortQuestion]:
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


def pointer_writer(release: Release, settings: Search, device: str, dtype: torch.dtype) -> PointerWriter:
    """The encoder as it was trained, and the decoder over the base's embeddings."""
    configuration = release.manifest.configuration
    encoder = encoder_of(release, device=device, dtype=dtype)
    stored = read_tensors(release.file(DECODER))
    generated = stored.pop("generated").tolist()
    shape = Shape(**configuration["decoder"])
    pointer = Pointer(shape, {k: v.float() for k, v in embeddings_of(encoder.model).items()}, generated)
    try:
        pointer.load_state_dict({name: tensor.float() for name, tensor in stored.items()})
    except RuntimeError as error:
        raise ReleaseError(f"{release.version}: {DECODER}: {error}") from None
    pieces = pieces_of(encoder.tokenizer, generated)
    return PointerWriter(encoder, pointer.to(device).eval(), pieces, settings)


def hub_writer(release: Release, settings: Search, device: str, dtype: torch.dtype) -> HubWriter:
    """An encoder-decoder of the hub with the weights that training changed."""
    manifest = release.manifest
    if manifest.base_sha256 is not None and base_digest(manifest.base) != manifest.base_sha256:
        raise ReleaseError(f"{release.version}: the base {manifest.base} has another sha256 than declared")
    model, tokenizer = load_hub(manifest.base)
    changed = read_tensors(release.file(CHANGED))
    own = dict(model.named_parameters())
    if any(name not in own or own[name].shape != tensor.shape for name, tensor in changed.items()):
        raise ReleaseError(f"{release.version}: {CHANGED} does not hold weights of {manifest.base}")
    model.load_state_dict({name: tensor.float() for name, tensor in changed.items()}, strict=False)
    return HubWriter(
        model.to(device=device, dtype=dtype).eval(), tokenizer, settings, manifest.configuration["max_pieces"]
    )


def load_hub(base: str) -> tuple[Any, Any]:
    """An encoder-decoder of `transformers` and its tokenizer."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # noqa: PLC0415  seconds to import

    place = resolve_base(base)
    model = AutoModelForSeq2SeqLM.from_pretrained(place, dtype=torch.float32, use_safetensors=True)
    return model, AutoTokenizer.from_pretrained(place)


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
