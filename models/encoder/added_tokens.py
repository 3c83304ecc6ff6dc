"""Encoders with tokens added to the base's vocabulary: [S] and [E] around a mention, one for each idiom."""

from __future__ import annotations

from torch import Tensor, nn

from models.encoder.model import Encoder
from models.encoder.packed.bert import PackedBert


class ExtendedEmbedding(nn.Module):
    """The base's embedding for token numbers below `first`, and `rows` (tokens, dimension) from there on."""

    def __init__(self, base: nn.Embedding, first: int, rows: Tensor) -> None:
        super().__init__()
        self.base = base
        self.first = first
        # Cloned: the tensor that was passed in may be shared.
        self.rows = nn.Parameter(rows.to(base.weight).clone())

    @property
    def weight(self) -> Tensor:
        """The base's weight: transformers reads an embedding's number format from this attribute."""
        return self.base.weight

    def forward(self, ids: Tensor) -> Tensor:
        """(batch, pieces) to (batch, pieces, dimension)."""
        known = self.base(ids.clamp(max=self.first - 1))
        own = nn.functional.embedding((ids - self.first).clamp(min=0), self.rows)
        return own.where((ids >= self.first).unsqueeze(-1), known)


def extend_embedding(encoder: Encoder, first: int, rows: Tensor) -> ExtendedEmbedding | None:
    """Adds tokens numbered from `first` with the embeddings `rows` (tokens, dimension of the embeddings,
    which some families have smaller than that of the layers) to the encoder's model, in place unless it is
    packed; a model of transformers must not be shared with another encoder. A packed one has no module.

    Raises ValueError when the rows do not have that dimension.
    """
    dimension = embedding_dimension(encoder)
    if rows.ndim != 2 or rows.shape[1] != dimension:  # noqa: PLR2004  a matrix
        raise ValueError(f"rows of added tokens are {tuple(rows.shape)}, not (tokens, {dimension})")
    if isinstance(encoder.model, PackedBert):
        encoder.model = encoder.model.with_added(rows)
        return None
    embedding = ExtendedEmbedding(encoder.model.get_input_embeddings(), first, rows)
    encoder.model.set_input_embeddings(embedding)
    return embedding


def embedding_dimension(encoder: Encoder) -> int:
    """The size of a token's embedding, which some families have smaller than a hidden state."""
    if isinstance(encoder.model, PackedBert):
        return encoder.dimension
    return int(encoder.model.get_input_embeddings().embedding_dim)


def extended_embedding(encoder: Encoder) -> ExtendedEmbedding:
    """The extended embedding of an encoder's model, also when an adapter wraps the model; not of a packed
    one.
    """
    return next(m for m in encoder.model.modules() if isinstance(m, ExtendedEmbedding))


def first_added(encoder: Encoder) -> int:
    """The number of the first token that `extend_embedding` added."""
    if isinstance(encoder.model, PackedBert):
        return encoder.model.vocabulary_size
    return extended_embedding(encoder).first
