"""The pieces of texts that are to be predicted."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.encoder.model import Encoder

#: Shares of the chosen pieces that become the mask token, and that stay; the others become random pieces
#: (Devlin et al. 2019, section 3.1).
MASKED, KEPT = 0.8, 0.1


@dataclass(frozen=True, slots=True)
class Masked:
    """A batch in which some pieces are hidden."""

    sequences: list[list[int]]
    """the pieces of each text without special tokens, with masks"""
    rows: Tensor
    """(hidden,): the text of each piece to predict"""
    columns: Tensor
    """(hidden,): its position in the text"""
    targets: Tensor
    """(hidden,): the piece itself"""


def masked(
    batch: Sequence[Sequence[int]], share: float, mask: int, ordinary: Sequence[int], rng: random.Random
) -> Masked:
    """The batch with this share of the pieces of each text chosen, at least one, if it has any; `ordinary`
    are the pieces that may stand in place of one.
    """
    sequences, rows, columns, targets = [], [], [], []
    for row, pieces in enumerate(batch):
        changed = list(pieces)
        chosen = rng.sample(range(len(pieces)), min(len(pieces), max(1, round(share * len(pieces)))))
        for column in sorted(chosen):
            rows.append(row)
            columns.append(column)
            targets.append(pieces[column])
            kind = rng.random()
            if kind < MASKED:
                changed[column] = mask
            elif kind >= MASKED + KEPT:
                changed[column] = rng.choice(ordinary)
        sequences.append(changed)
    return Masked(sequences, *(torch.tensor(c, dtype=torch.long) for c in (rows, columns, targets)))


def pieces_of(texts: Sequence[str], encoder: Encoder) -> list[list[int]]:
    """The first pieces of each text that fit a window; texts without any are left out."""
    limit = encoder.max_pieces - 2
    encoded: Mapping[str, list[list[int]]] = encoder.tokenizer(
        list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return [ids[:limit] for ids in encoded["input_ids"] if ids]
