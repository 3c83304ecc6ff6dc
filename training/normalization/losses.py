"""The losses of Dynamic Context Refining: cosine embedding (CONORM-EN), or a softmax over terms."""

from __future__ import annotations

from torch import Tensor, nn, ones


def cosine_embedding(refined: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """All (n, d): mean over 2n pairs of 1 - cos(e', m) and of max(0, cos(e', m))."""
    loss = nn.functional.cosine_embedding_loss
    same = ones(len(refined), device=refined.device)
    return (loss(refined, positive, same, margin=0.0) + loss(refined, negative, -same, margin=0.0)) / 2


def softmax_loss(
    refined: Tensor, terms: Tensor, positive: Tensor, ignored: Tensor, temperature: float
) -> Tensor:
    """Refined (n, d), terms (m, d), positive and ignored (n, m): -log of the positives' share of
    sum exp(cos / t) over the terms that are not ignored, mean over n.
    """
    unit = nn.functional.normalize
    logits = (unit(refined, dim=-1) @ unit(terms, dim=-1).T) / temperature
    logits = logits.masked_fill(ignored & ~positive, float("-inf"))
    numerator = logits.masked_fill(~positive, float("-inf")).logsumexp(1)
    return (logits.logsumexp(1) - numerator).mean()
