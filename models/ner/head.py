"""The classification head of CONORM-NER (CONORM, section 3.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
