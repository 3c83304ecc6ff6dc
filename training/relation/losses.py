"""The contrastive losses of CLGS, CLDR and CLNER (Theodoropoulos et al. 2021, Eq. 4 to 6), each on one batch.

All are means over their anchors where the paper has sums: Adam is invariant to the scale, and batches of
different sizes get the same weight.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

TEMPERATURE = 0.1
#: Words that each word of a batch is compared with.
SAMPLES = 80


def graph_contrast(text: Tensor, graphs: Tensor) -> Tensor:
    """Eq. 4 and Eq. 5: -log softmax over z of <text, graph_z> / t at z = 0, the positive graph.

    (anchors, d) and (anchors, Z, d); an anchor is a sentence (CLGS) or a relation (CLDR).
    """
    similar = cosine_similarity(text.unsqueeze(1), graphs, dim=-1) / TEMPERATURE
    return cross_entropy(similar, torch.zeros(len(text), dtype=torch.long, device=text.device))


def balanced_samples(tags: Tensor, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The words that each word of a batch is compared with, from (words,) tags: two masks (words, words), of
    the samples with the word's own tag, and of all samples.

    At most a quarter of `samples` are drawn from the word's own tag, the others as evenly as possible from
    the other tags (section 3.2 and the paper's appendix: 80 samples, about 20 of them positive). A word is
    never its own sample.
    """
    tags = tags.cpu()
    n = len(tags)
    kinds, own, counts = torch.unique(tags, return_inverse=True, return_counts=True)
    quota = torch.zeros((len(kinds), len(kinds)), dtype=torch.long)
    for k, count in enumerate(counts.tolist()):
        positives = min(samples // 4, count - 1)
        others = torch.arange(len(kinds)) != k
        quota[k, others] = torch.tensor(
            even_share(counts[others].tolist(), samples - positives), dtype=torch.long
        )
        quota[k, k] = positives
    chosen = torch.zeros((n, n), dtype=torch.bool)
    for j in range(len(kinds)):
        columns = (own == j).nonzero().squeeze(1)
        keys = torch.rand((n, len(columns)), generator=generator)
        # The word itself is ranked last, beyond every quota.
        keys[columns, torch.arange(len(columns))] = 2
        rank = keys.argsort(1).argsort(1)
        chosen[:, columns] = rank < quota[own, j].unsqueeze(1)
    return chosen & (own.unsqueeze(0) == own.unsqueeze(1)), chosen


def word_contrast(
    vectors: Tensor, tags: Tensor, generator: torch.Generator, samples: int = SAMPLES
) -> Tensor:
    """Eq. 6: -log (sum over the positives of exp(<n, p> / t) / sum over all samples of exp(<n, k> / t)), the
    mean over the words n that have a positive and a negative.

    (words, d) and (words,).
    """
    unit = normalize(vectors, dim=-1)
    positive, sampled = balanced_samples(tags, samples, generator)
    anchors = (positive.any(1) & (sampled & ~positive).any(1)).to(vectors.device)
    if not anchors.any():
        return vectors.sum() * 0
    similar = (unit @ unit.T)[anchors] / TEMPERATURE
    positive, sampled = positive.to(vectors.device)[anchors], sampled.to(vectors.device)[anchors]
    over = similar.masked_fill(~positive, -torch.inf).logsumexp(1)
    under = similar.masked_fill(~sampled, -torch.inf).logsumexp(1)
    return (under - over).mean()


def even_share(available: Sequence[int], total: int) -> list[int]:
    """`total` divided as evenly as the available numbers allow."""
    shares = [0] * len(available)
    order = sorted(range(len(available)), key=lambda i: available[i])
    for position, i in enumerate(order):
        shares[i] = min(available[i], total // (len(order) - position))
        total -= shares[i]
    return shares
