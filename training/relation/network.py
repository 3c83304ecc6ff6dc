"""What CLNER, CLDR and CLGS train and minimise (Theodoropoulos et al. 2021): a copy of an encoder, graphs of
relations (Eq. 1 to 3) with their wrong words, and the contrastive losses (Eq. 4 to 6), each on one batch.

A graph has two nodes, or the few words of a sentence's relations: it is one dense product. Losses are means
over their anchors where the paper has sums: Adam is invariant to the scale, and batches of different sizes
get the same weight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

from models.encoder.layers import layers_of
from models.encoder.model import Encoder
from training.common import adapter
from training.relation.data import Example, offsets

#: Negative graphs for each positive one, and how much a node of a pair counts in its own state.
HARD, SELF_LOOP = 8, 0.8
TEMPERATURE = 0.1
#: Words that each word of a batch is compared with.
SAMPLES = 80


def half_of(encoder: Encoder) -> int:
    """How many lower layers CLDR and CLGS leave frozen, as in the paper."""
    return len(layers_of(encoder.model)) // 2


def trained_copy(encoder: Encoder, frozen: int) -> Encoder:
    """A copy of which the layers above the first `frozen` layers are trained."""
    copied = adapter.trainable(encoder, 0)
    # The backward pass through the fused attention takes a fifth of a step on a processor.
    copied.model.set_attn_implementation("eager")
    for layer in layers_of(copied.model)[:frozen]:
        layer.requires_grad_(False)
    return copied


def word_states(hidden: Tensor, batch: Sequence[Example]) -> Tensor:
    """(words of the batch, d): the mean of each word's pieces, from hidden states (sentences, pieces, d) with
    the special token first; sentence after sentence. Gradients flow.
    """
    device, firsts = hidden.device, offsets(batch).tolist()
    lengths = torch.tensor([len(e.pieces) for e in batch])
    rows = torch.repeat_interleave(torch.arange(len(batch)), lengths).to(device)
    columns = torch.cat([torch.arange(1, n + 1) for n in lengths.tolist()]).to(device)
    word = np.concatenate([e.word_of + first for e, first in zip(batch, firsts, strict=True)])
    numbers, n_words = torch.from_numpy(word).to(device), sum(len(e.tags) for e in batch)
    sums = hidden.new_zeros((n_words, hidden.shape[-1])).index_add(0, numbers, hidden[rows, columns])
    return sums / torch.bincount(numbers, minlength=n_words).clamp(min=1).unsqueeze(1)


class PairGraph(nn.Module):
    """CLDR's graph of one relation, a drug and an effect: X' = ReLU(A X W) with A = [[l, 1-l], [1-l, l]]."""

    def __init__(self, dimension: int, self_loop: float = SELF_LOOP) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dimension, dimension))
        nn.init.xavier_uniform_(self.weight)
        loop = torch.tensor([[self_loop, 1 - self_loop], [1 - self_loop, self_loop]])
        self.register_buffer("adjacency", loop)

    def forward(self, nodes: Tensor) -> Tensor:
        """(..., 2, d), drug and effect, to (..., 2 d), the concatenation of both outputs."""
        return torch.relu(self.get_buffer("adjacency") @ nodes @ self.weight).flatten(-2)


class RelationGraph(nn.Module):
    """CLGS's graph of a sentence's relations: the mean over nodes of tanh(D^-1/2 (A + I) D^-1/2 X W)."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dimension, dimension))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Nodes (Z, n, d) of graphs with the same edges (n, n) to (Z, d)."""
        return torch.tanh(degree_normalised(edges) @ nodes @ self.weight).mean(-2)


def degree_normalised(edges: Tensor) -> Tensor:
    """Eq. 1 and 2: D^-1/2 (A + I) D^-1/2 of edges (n, n)."""
    looped = edges + torch.eye(len(edges), device=edges.device)
    root = looped.sum(-1).rsqrt()
    return root.unsqueeze(-1) * looped * root


def wrong_words(allowed: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """(rows, count): `count` random words of each row of (rows, words), of those allowed, with repetition
    where fewer are allowed. Every row must allow at least one.
    """
    # Every allowed word is drawn once before one is repeated.
    keys = torch.rand(allowed.shape, generator=generator).masked_fill(~allowed, 2)
    place = torch.arange(count).unsqueeze(0) % allowed.sum(1, keepdim=True).clamp(max=count)
    return keys.argsort(1).gather(1, place)


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
    kinds, kind_of, counts = torch.unique(tags, return_inverse=True, return_counts=True)
    quota = torch.zeros((len(kinds), len(kinds)), dtype=torch.long)
    for k, count in enumerate(counts.tolist()):
        positives = min(samples // 4, count - 1)
        rest = torch.arange(len(kinds)) != k
        quota[k, rest] = torch.tensor(
            even_share(counts[rest].tolist(), samples - positives), dtype=torch.long
        )
        quota[k, k] = positives
    chosen = torch.zeros((n, n), dtype=torch.bool)
    for j in range(len(kinds)):
        columns = (kind_of == j).nonzero().squeeze(1)
        keys = torch.rand((n, len(columns)), generator=generator)
        # The word itself is ranked last, beyond every quota.
        keys[columns, torch.arange(len(columns))] = 2
        rank = keys.argsort(1).argsort(1)
        chosen[:, columns] = rank < quota[kind_of, j].unsqueeze(1)
    return chosen & (kind_of.unsqueeze(0) == kind_of.unsqueeze(1)), chosen


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
