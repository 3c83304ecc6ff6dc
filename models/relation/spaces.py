"""The two embedding spaces of CLDR/CLNER: words as vectors of the entity space and of the relation space."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from models.encoder.faiss_index import unit
from models.encoder.model import Encoder, encoder_of
from models.encoder.split.layer_split import EncodedSentence, SplitEncoder, UpperLayers
from models.encoder.word_pieces import WordPieces
from models.relation.support_set import Floats
from models.releases.manifest import Release

#: The adapter of the upper layers that are trained for the relation space alone.
UPPER_ADAPTER = "above.safetensors"
#: Only upper layers need the word pieces.
_NO_PIECES = WordPieces([], [], [])


class EmbeddingSpaces:
    """Encoder and projections of both spaces, which share the encoder's lower layers.

    Without upper layers of its own the relation space uses the hidden states of the whole encoder.
    """

    def __init__(
        self,
        encoder: Encoder,
        projection: Floats,
        *,
        upper: UpperLayers | None = None,
        pair_projection: Floats | None = None,
    ) -> None:
        """`projection`: (encoder dimension, dimension of the entity space); `pair_projection` likewise for
        the relation space, by default the same. `encoder` must be a `SplitEncoder` where `upper` is given.
        """
        self.encoder = encoder
        self.upper = upper
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
        """The encoders of a release, with upper layers where it has an adapter for them."""
        manifest = release.manifest
        encoder = encoder_of(release, device=device, dtype=dtype)
        upper = None
        below = manifest.configuration.get("below", 0)
        if below:
            encoder = SplitEncoder(encoder, below)
        if UPPER_ADAPTER in manifest.files:
            whole = Encoder.for_inference(
                manifest.base,
                device=device,
                dtype=dtype,
                max_pieces=manifest.configuration["max_pieces"],
                adapter=release.file(UPPER_ADAPTER),
            )
            upper = UpperLayers(whole, below)
        return cls(encoder, projection, upper=upper, pair_projection=pair_projection)

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[EncodedSentence]:
        """Hidden states of each sentence, given as words, with those at the split where there is one."""
        with torch.inference_mode():
            if isinstance(self.encoder, SplitEncoder):
                return self.encoder.encode(sentences)
            return [
                EncodedSentence(_NO_PIECES, vectors, []) for vectors in self.encoder.word_vectors(sentences)
            ]

    def entity_vectors(self, encoded: Sequence[EncodedSentence]) -> list[Floats]:
        """Unit vectors of the entity space, (words, dimension) for each sentence."""
        return [unit(unit(e.vectors.numpy()) @ self.projection) for e in encoded]

    def relation_vectors(self, encoded: Sequence[EncodedSentence]) -> list[Floats]:
        """Unit vectors of the relation space, (words, dimension) for each sentence; runs the upper layers.

        A pair is represented by the vectors of two words, [drug ; effect].
        """
        with torch.inference_mode():
            hidden = self.upper.word_vectors_above(encoded) if self.upper else [e.vectors for e in encoded]
        return [unit(unit(h.numpy()) @ self.pair_projection) for h in hidden]

    def fits(self) -> bool:
        """Whether both projections are matrices from the encoder's dimension."""
        return all(
            p.ndim == 2 and p.shape[0] == self.encoder.dimension  # noqa: PLR2004  a matrix
            for p in (self.projection, self.pair_projection)
        )
