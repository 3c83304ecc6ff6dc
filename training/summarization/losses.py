"""The contrastive loss of ECL (Eq. 5 and 6) and the queue of its simple negatives."""

from __future__ import annotations

import torch
from torch import Tensor

#: Of Eq. 5 and 6.
TEMPERATURE = 0.07
#: Summaries whose keys are simple negatives.
QUEUE = 4096
#: Dimensions of negatives that each question has of its own: (batch, n, dimension).
_OWN = 3


def contrast(
    query: Tensor, right: Tensor, wrong: Tensor, allowed: Tensor, temperature: float = TEMPERATURE
) -> Tensor:
    """Eq. 5 and 6, mean over the questions that have a negative; 0 where none has.

    `query`, `right` (batch, dimension), `wrong` (n, dimension) or (batch, n, dimension), all unit vectors;
    `allowed` (batch, n).
    """
    near = (query * right).sum(-1) / temperature
    far = torch.einsum("bd,bnd->bn" if wrong.ndim == _OWN else "bd,nd->bn", query, wrong) / temperature
    some = allowed.any(-1)
    if not bool(some.any()):
        return query.sum() * 0
    far = far.masked_fill(~allowed, -torch.inf)[some]
    return (far.logsumexp(-1) - near[some]).mean()


class Queue:
    """The keys of the last `length` summaries, (n, dimension), and the number of each one's summary, (n,)."""

    def __init__(self, length: int = QUEUE, device: torch.device | str = "cpu") -> None:
        self.length = length
        self.keys = torch.empty(0, device=device)
        self.owners = torch.empty(0, dtype=torch.long, device=device)

    def put(self, keys: Tensor, owners: Tensor) -> None:
        """Adds keys; the oldest ones leave."""
        self.keys = torch.cat([self.keys.view(-1, keys.shape[1]), keys])[-self.length :]
        self.owners = torch.cat([self.owners, owners])[-self.length :]

    def state(self) -> list[Tensor]:
        return [self.keys.cpu(), self.owners.cpu()]

    def restore(self, state: list[Tensor]) -> None:
        keys, owners = state
        self.keys, self.owners = keys.to(self.keys.device), owners.to(self.owners.device)
