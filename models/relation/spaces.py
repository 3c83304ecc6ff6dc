"""The two embedding spaces of CLDR/CLNER: words as vectors of the entity space and of the relation space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.encoder.faiss_index import unit
from models.encoder.layers import over, shared
from models.encoder.model import Encoder, encoder_of
from models.encoder.packed.bert import Read
from models.encoder.word_pieces import WordPieces
from models.relation.support_set import Floats
from models.releases.manifest import Release

#: The adapter of the upper layers that are trained for the relation space alone.
UPPER_ADAPTER = "above.safetensors"


class EncodedSentence(NamedTuple):
    """A sentence in the encoder of the entity space."""

    pieces: WordPieces
    vectors: Tensor
    """(words, dimension)"""
    windows: Sequence[Read]
    """what the encoder of the relation space reads: pieces, or the states of the layers that both have"""


class EmbeddingSpaces:
    """Encoders and projections of both spaces; without an encoder of its own the relation space has that of
    the entity space.
    """

    def __init__(
        self,
        encoder: Encoder,
        projection: Floats,
        *,
        pair_encoder: Encoder | None = None,
        pair_projection: Floats | None = None,
    ) -> None:
        """`projection`: (encoder dimension, dimension of the entity space); `pair_projection` likewise for
        the relation space, by default the same.
        """
        self.encoder = encoder
        self.pair_encoder = pair_encoder
        self._lower: Encoder | None = None
        self._above, self._pairs_above = encoder, pair_encoder
        if pair_encoder is not None and (parts := shared(encoder, pair_encoder)):
            self._lower, self._above, self._pairs_above = parts
        self.projection = projection
        self.pair_projection = projection if pair_projection is None else pair_projection

    @classmethod
    def load(
        cls,
        release: Release,
        projection: Floats,
        pair_projection: Floats | None,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> EmbeddingSpaces:
        """The encoders of a release; that of the relation space has its own upper layers over the lower ones
        of the entity space.
        """
        manifest = release.manifest
        encoder = encoder_of(release, device=device, dtype=dtype)
        pair_encoder = None
        if UPPER_ADAPTER in manifest.files:
            whole = Encoder.for_inference(
                manifest.base,
                device=device,
                dtype=dtype,
                max_pieces=manifest.configuration["max_pieces"],
                adapter=release.file(UPPER_ADAPTER),
            )
            pair_encoder = over(encoder, whole, manifest.configuration["below"])
        return cls(encoder, projection, pair_encoder=pair_encoder, pair_projection=pair_projection)

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[EncodedSentence]:
        """The sentences, given as words, in the entity space's encoder."""
        split = self.encoder.split(sentences)
        windows: list[list[Read]] = [[*self.encoder.windows(s)] for s in split]
        with torch.inference_mode():
            if self._lower is not None:
                states = iter(self._lower.states([w for own in windows for w in own]))
                windows = [[next(states) for _ in own] for own in windows]
            vectors = self._above.vectors_of(split, windows)
        return list(map(EncodedSentence, split, vectors, windows))

    def entity_vectors(self, encoded: Sequence[EncodedSentence]) -> list[Floats]:
        """Unit vectors of the entity space, (words, dimension) for each sentence."""
        return [unit(unit(e.vectors.numpy()) @ self.projection) for e in encoded]

    def relation_vectors(self, encoded: Sequence[EncodedSentence]) -> list[Floats]:
        """Unit vectors of the relation space, (words, dimension) for each sentence; its encoder reads them,
        or its layers above those of the entity space do.

        A pair is represented by the vectors of two words, [drug ; effect].
        """
        hidden = [e.vectors for e in encoded]
        if self._pairs_above is not None:
            split, windows = [e.pieces for e in encoded], [e.windows for e in encoded]
            with torch.inference_mode():
                hidden = self._pairs_above.vectors_of(split, windows)
        return [unit(unit(h.numpy()) @ self.pair_projection) for h in hidden]

    def fits(self) -> bool:
        """Whether both projections are matrices from the encoder's dimension."""
        return all(
            p.ndim == 2 and p.shape[0] == self.encoder.dimension  # noqa: PLR2004  a matrix
            for p in (self.projection, self.pair_projection)
        )
