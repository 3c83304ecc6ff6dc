"""The token head beside the neighbours, and how much it counts. kNN-NER
(Wang et al. 2022): p = s p_neighbours + (1 - s) p_head.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from models.relation.neighbours import Floats, TokenHead, decode_tags
from training.relation.knn_scores import Queries, mention_scores
from training.relation.support_set import Part, WordRows

console = Console()
#: Shares of the neighbours' votes that are tried; among equals the largest is taken.
SHARES = (1.0, 0.9, 0.75, 0.6, 0.5, 0.4, 0.25, 0.0)


def head_of(layer: nn.Linear) -> TokenHead:
    """A trained layer as a release holds it, in 16 bits."""
    return TokenHead(*(_rounded(t) for t in (layer.weight, layer.bias)))


def choose_share(words: WordRows, asked: Part, data: Queries) -> float:
    """The share of the votes with the best strict micro F1 on `data`, whose words are `asked`; prints the
    scores of each.
    """
    if words.head is None:
        return 1.0
    votes, other = words.votes_on(asked), words.head.probabilities(asked.hidden())
    table = Table("share of the votes", "strict micro F1", "macro F1", "false effects per 1000")
    found = {}
    for share in SHARES:
        mixed = (share * votes + (1 - share) * other).astype(np.float32)
        tags = decode_tags(mixed, [len(e.tags) for e in asked.examples], words.transitions)
        scores = mention_scores(tags, data)
        found[share] = scores["strict micro F1"]
        table.add_row(str(share), *(f"{v:.4f}" for v in scores.values()))
    console.print(table)
    return max(SHARES, key=lambda share: found[share])


def _rounded(tensor: Tensor) -> Floats:
    rounded: Floats = tensor.detach().cpu().half().float().numpy()
    return rounded
