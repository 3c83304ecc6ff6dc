"""A vocabulary that has more tokens than its base: [S] and [E] around a mention, one for each known idiom."""

from __future__ import annotations

from torch import Tensor, nn

from models.encoder.model import Encoder


class ExtendedEmbedding(nn.Module):
    """The base's embedding and, from the number `first` on, `rows` of its own, (tokens, dimension)."""

    def __init__(self, base: nn.Embedding, first: int, rows: Tensor) -> None:
        super().__init__()
        self.base = base
        self.first = first
        # A parameter of its own: what was read may be shared.
        self.rows = nn.Parameter(rows.to(base.weight).clone())

    @property
    def weight(self) -> Tensor:
        """What asks an embedding for its type asks for this."""
        return self.base.weight

    def forward(self, ids: Tensor) -> Tensor:
        """(batch, pieces) to (batch, pieces, dimension)."""
        known = self.base(ids.clamp(max=self.first - 1))
        own = nn.functional.embedding((ids - self.first).clamp(min=0), self.rows)
        return own.where((ids >= self.first).unsqueeze(-1), known)


def extend(encoder: Encoder, first: int, rows: Tensor) -> ExtendedEmbedding:
    """Gives an encoder whose model nobody shares the tokens `first` to `first` + tokens - 1."""
    if rows.ndim != 2 or rows.shape[1] != encoder.dimension:  # noqa: PLR2004  a matrix
        raise ValueError(f"rows of added tokens are {tuple(rows.shape)}, not (tokens, {encoder.dimension})")
    made = ExtendedEmbedding(encoder.model.get_input_embeddings(), first, rows)
    encoder.model.set_input_embeddings(made)
    return made


def extended(encoder: Encoder) -> ExtendedEmbedding:
    """The vocabulary of an encoder that has one, also inside an adapter's wrapping."""
    return next(m for m in encoder.model.modules() if isinstance(m, ExtendedEmbedding))
