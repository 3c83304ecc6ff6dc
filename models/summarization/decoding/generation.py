"""Summaries of each text by the pointer-generator decoder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from models.encoder.model import PAD_TO, Encoder, encoder_of, padded
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import check_size, read_tensors
from models.summarization.decoding.beam_search import Hypothesis, Search, search
from models.summarization.decoding.decoder_layers import DecoderConfig, Source
from models.summarization.decoding.detokenization import written
from models.summarization.decoding.encoder_parts import embeddings_of
from models.summarization.decoding.extended_vocabulary import ExtendedVocabulary
from models.summarization.decoding.pointer_decoder import PointerDecoder
from models.summarization.decoding.source_pieces import source_of, source_pieces, with_special_pieces
from models.summarization.files import DECODER

#: Padded pieces of the questions of one search, times beams.
BUDGET = 32768
#: Questions whose lengths round up to the same multiple of this many pieces share a search: the padding of
#: each depends on its own length alone, and a wide batch costs hardly more per step than a narrow one.
WIDTH = 64


class Summary(NamedTuple):
    """A summary with a score from 0 to 1; of a decoder the geometric mean of its pieces' probabilities."""

    text: str
    score: float


class Writer(Protocol):
    """Writes summaries of texts."""

    def write(self, texts: Sequence[str]) -> list[list[Summary]]:
        """Summaries of each text, best first, possibly none; deterministic and batch-invariant."""


class PointerWriter:
    """Writes with an encoder and a pointer decoder. Texts of one padded length share a search, so that the
    padding of a text does not depend on the other texts of the batch.
    """

    def __init__(
        self, encoder: Encoder, decoder: PointerDecoder, vocabulary: ExtendedVocabulary, settings: Search
    ) -> None:
        self.encoder, self.decoder, self.vocabulary, self.settings = encoder, decoder, vocabulary, settings

    @classmethod
    def load(cls, release: Release, settings: Search, device: str, dtype: torch.dtype) -> PointerWriter:
        """The trained encoder of a release, and its decoder over the encoder's embeddings; raises
        ReleaseError where the decoder does not fit.
        """
        encoder = encoder_of(release, device=device, dtype=dtype, packed=False)
        stored = read_tensors(release.file(DECODER))
        generated = stored.pop("generated").tolist()
        config = DecoderConfig(**release.manifest.configuration["decoder"])
        check_size(
            stored,
            config.layers * config.dimension * (8 * config.dimension + 2 * config.inner),
            release.version,
        )
        # Of the base: training leaves them as they are, but may change what projects them.
        base = Encoder.load(release.manifest.base, device=device, dtype=dtype).model
        embeddings = {name: tensor.float() for name, tensor in embeddings_of(base).items()}
        decoder = PointerDecoder(config, embeddings, generated)
        try:
            decoder.load_state_dict({name: tensor.float() for name, tensor in stored.items()})
        except RuntimeError as error:
            raise ReleaseError(f"{release.version}: {DECODER}: {error}") from None
        vocabulary = ExtendedVocabulary.of_encoder(encoder, generated)
        return cls(encoder, decoder.to(device).eval(), vocabulary, settings)

    @torch.inference_mode()
    def write(self, texts: Sequence[str]) -> list[list[Summary]]:
        """At most `beams` summaries of each text, best first; see `Writer`."""
        out: list[list[Summary]] = [[] for _ in texts]
        pieces = source_pieces(self.encoder, texts)
        for members in self._batches([len(p) + 2 for p in pieces]):
            own = [pieces[i] for i in members]
            for i, hypotheses in zip(members, self._search(own), strict=True):
                rows = with_special_pieces(self.encoder, pieces[i])
                out[i] = [self._summary(h, rows, texts[i]) for h in hypotheses]
        return out

    def _summary(self, hypothesis: Hypothesis, source: Sequence[int], text: str) -> Summary:
        ids = [self.vocabulary.piece(n, source) for n in hypothesis.numbers]
        score = math.exp(hypothesis.log_probability / (len(ids) + 1))
        return Summary(written(self.encoder.tokenizer, ids, text), round(score, 4))

    def _search(self, sources: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """The hypotheses for texts of one padded length, given as pieces."""
        source = source_of(self.encoder, self.vocabulary, sources, self._encode(sources))
        device = source.mask.device
        cache = self.decoder.start(source)
        table = self._piece_table(sources, source).repeat_interleave(self.settings.beams, 0)

        def step(numbers: Tensor, rows: Tensor) -> Tensor:
            nonlocal table
            if cache.own:
                # The hypotheses of one text have equal rows, so that the table changes only with the texts.
                table = table if len(rows) == len(table) else table.index_select(0, rows)
                cache.select(rows.to(device))
                pieces = table.gather(1, numbers.unsqueeze(1)).squeeze(1)
            else:
                pieces = torch.full_like(numbers, self.vocabulary.begin)
            return self.decoder.step(cache, pieces.to(device)).clamp(min=0).log()

        return search(step, len(sources), self.vocabulary.begin, 0, self.settings)

    def _piece_table(self, sources: Sequence[Sequence[int]], source: Source) -> Tensor:
        """(texts, G + padded pieces): the piece that each number stands for."""
        width = source.mask.shape[1]
        rows = [with_special_pieces(self.encoder, s) for s in sources]
        own = torch.tensor([[*r, *[0] * (width - len(r))] for r in rows])
        return torch.cat([torch.tensor(self.vocabulary.generated).expand(len(rows), -1), own], 1)

    def _encode(self, sources: Sequence[Sequence[int]]) -> Tensor:
        """(texts, padded pieces, dimension) of texts that share a search; each is encoded at its own padded
        length.
        """
        lengths = [len(s) + 2 for s in sources]
        hidden = torch.zeros(len(sources), padded(lengths[0], WIDTH), self.encoder.dimension)
        for members in _by_length(lengths, PAD_TO).values():
            states = self.encoder.forward([sources[i] for i in members])
            hidden = hidden.to(states)
            hidden[members, : states.shape[1]] = states
        return hidden

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of the texts of each search."""
        for width, members in sorted(_by_length(lengths, WIDTH).items()):
            size = max(1, BUDGET // (width * self.settings.beams))
            for start in range(0, len(members), size):
                yield members[start : start + size]


def _by_length(lengths: Sequence[int], multiple: int) -> dict[int, list[int]]:
    """From each length, rounded up to a multiple, to the indices that have it."""
    groups: dict[int, list[int]] = {}
    for i, length in enumerate(lengths):
        groups.setdefault(padded(length, multiple), []).append(i)
    return groups
