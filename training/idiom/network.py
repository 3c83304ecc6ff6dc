"""The encoder of a run: what of it is trained, the tokens of the expressions, and pooling with gradients; and
the losses: triplets (He et al. 2024, sections 3.1 and 3.2), and one that keeps the cosines of different
sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.idiom import add_tokens, idiom_token, with_pooling
from training.common import adapter
from training.common.batching import by_length
from training.idiom.settings import Settings

#: Texts of one forward pass.
CHUNK = 16
DROPOUT = 0.05


def trainable_encoder(settings: Settings, meanings: Mapping[str, Sequence[str]]) -> Encoder:
    """A copy of the base that can be trained, through an adapter or whole.

    Each expression of `meanings` gets a token whose initial embedding is the mean of its meanings.
    """
    encoder = adapter.trainable(Encoder.load(settings.base), settings.rank)
    if meanings:
        texts = [m if m and settings.paraphrase else [e] for e, m in meanings.items()]
        add_tokens(encoder, [idiom_token(e) for e in meanings], mean_embeddings(encoder, texts))
    for module in encoder.model.modules():
        if isinstance(module, nn.Dropout) and module.p:
            module.p = DROPOUT
    return with_pooling(encoder, settings.pooling)


def mean_embeddings(encoder: Encoder, texts: Sequence[Sequence[str]]) -> Tensor:
    """(tokens, dimension): the mean over a token's texts of the mean embedding of their pieces."""
    weight = encoder.model.get_input_embeddings().weight.detach()
    rows = [torch.stack([weight[p].mean(0) for p in _pieces(encoder, own)]).mean(0) for own in texts]
    return torch.stack(rows)


def mean_vectors(encoder: Encoder, texts: Sequence[str]) -> Tensor:
    """(texts, dimension): the mean over each text's pieces, as `Encoder.embed` but with gradients and not
    scaled to unit length.
    """
    pieces = _pieces(encoder, texts)
    vectors: list[Tensor] = [torch.empty(0)] * len(pieces)
    for batch in by_length([len(p) for p in pieces], CHUNK):
        hidden = encoder.forward([pieces[i] for i in batch])
        for row, i in enumerate(batch):
            vectors[i] = hidden[row, : len(pieces[i]) + 2].mean(0)
    return torch.stack(vectors)


def _pieces(encoder: Encoder, texts: Sequence[str]) -> list[list[int]]:
    limit = encoder.max_pieces - 2
    encoded = encoder.tokenizer(
        list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return [ids[:limit] for ids in encoded["input_ids"]]


class TripletLoss:
    """The paper's loss of one batch: vectors (rows, dimension) and labels (rows,) to a number.

    Of all triplets max(0, sim(a, n) - sim(a, p) + `margin`), averaged over the non-zero terms. The paper
    first mines the triplets with sim(a, p) - sim(a, n) < 0.4, which leaves out none of those.
    """

    def __init__(self, margin: float = 0.3) -> None:
        from sentence_transformers.sentence_transformer import losses  # noqa: PLC0415  seconds to import

        model: Any = None  # no vectors are asked of it
        cosine = losses.BatchHardTripletLossDistanceFunction.cosine_distance
        self.loss = losses.BatchAllTripletLoss(model, cosine, margin)

    def __call__(self, vectors: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor = self.loss.batch_all_triplet_loss(labels, vectors)
        return loss


def cosine_change(vectors: Tensor, before: Tensor, groups: Tensor) -> Tensor:
    """Mean squared difference between the cosines of texts of different groups now and before training:
    `vectors` (texts, dimension), `before` unit vectors of the same shape, `groups` (texts,).
    """
    unit = nn.functional.normalize(vectors, dim=-1)
    different = groups.unsqueeze(0) != groups.unsqueeze(1)
    change = (unit @ unit.T - before @ before.T)[different]
    return change.square().mean() if len(change) else vectors.sum() * 0
