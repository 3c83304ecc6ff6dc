"""The classification head of CONORM-NER (CONORM, section 3.1), and a head for whole sentences."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.encoder.number_formats import in_32_bits


class Head(nn.Module):
    """Dropout on the hidden state, the sub-word flag (1 for later pieces of a word) and a linear layer."""

    def __init__(self, dimension: int, n_tags: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(dimension + 1, n_tags)

    def forward(self, hidden: Tensor, flag: Tensor) -> Tensor:
        """Logits (..., tags) from hidden states (..., dimension) and sub-word flags (...)."""
        logits: Tensor = self.linear(torch.cat([self.dropout(hidden), flag.unsqueeze(-1)], dim=-1))
        return logits

    def of_first(self, hidden: Tensor) -> Tensor:
        """Logits (pieces, tags) of pieces that begin a word, from (pieces, dimension); for inference."""
        return functional.linear(hidden, self.linear.weight[:, :-1], self.linear.bias)


class EventHead(nn.Module):
    """Whether a sentence reports an adverse event: attention over its pieces, then a linear layer.

    It computes in 32 bits, under autocast too: see `in_32_bits`.
    """

    def __init__(self, dimension: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention = nn.Linear(dimension, 1)
        self.linear = nn.Linear(dimension, 1)

    def forward(self, hidden: Tensor, inside: Tensor | None = None) -> Tensor:
        """Logits (...) from hidden states (..., pieces, dimension); `inside`, (..., pieces), is false for
        padding.
        """
        with in_32_bits(hidden.device):
            hidden = self.dropout(hidden.float())
            scores = self.attention(hidden).squeeze(-1)
            if inside is not None:
                scores = scores.masked_fill(~inside, -torch.inf)
            pooled = (scores.softmax(-1).unsqueeze(-1) * hidden).sum(-2)
            logits: Tensor = self.linear(pooled).squeeze(-1)
            return logits

    def of_rows(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """Logits (sentences,) from the hidden states (pieces, dimension) of sentences that lie one behind the
        other and have so many pieces, each at least one; for inference.
        """
        with in_32_bits(hidden.device):
            hidden = hidden.float()
            inside = torch.arange(int(lengths.max()), device=hidden.device) < lengths.unsqueeze(1)
            scores = hidden.new_full(inside.shape, -torch.inf)
            scores[inside] = self.attention(hidden).squeeze(-1)
            weights = scores.softmax(-1)[inside]
            rows = torch.arange(len(hidden), device=hidden.device)
            pooled = functional.embedding_bag(
                rows, hidden, lengths.cumsum(0) - lengths, mode="sum", per_sample_weights=weights
            )
            logits: Tensor = self.linear(pooled).squeeze(-1)
            return logits
