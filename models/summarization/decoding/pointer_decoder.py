"""A small Transformer decoder that generates pieces of a short list and copies others from the question.

The pointer-generator of See et al. (2017) over word pieces: p(w) = g softmax(generated)(w) + (1 - g) * sum of
the copy attention on the source's pieces w. It generates only pieces of the training summaries; a drug or a
disease that is not among them can only be copied. The embeddings are those of the encoder, frozen and tied,
so that a release does not contain them.

Unlike in See et al., copying takes the pieces before into account: the copy score of a position is raised
where the one or two pieces before it are the last pieces of the summary, and a piece inside a word is copied
only then. Without this a small decoder merges two drug names into "levothyroxeneism".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from models.encoder.precision import in_32_bits
from models.summarization.decoding.decoder_layers import Cache, DecoderConfig, DecoderLayer, Masks, Source

#: The smallest probability in a logarithm.
TINY = 1e-7


class PointerDecoder(nn.Module):
    """The decoder; not thread-safe. The attribute names of its parameters are tensor names of a release's
    decoder file; the embeddings are given and neither trained nor stored.
    """

    words: Tensor
    positions: Tensor
    generated: Tensor

    def __init__(
        self, config: DecoderConfig, embeddings: Mapping[str, Tensor], generated: Sequence[int]
    ) -> None:
        """`embeddings`: `words` (pieces, dimension), `positions` (at least `longest`, dimension), and `norm`
        (2, dimension): weight and bias of the norm of their sum. `generated`: the G pieces that may be
        generated.
        """
        super().__init__()
        d = config.dimension
        self.config = config
        for name in ("words", "positions", "norm"):
            self.register_buffer(name, embeddings[name].detach(), persistent=False)
        self.register_buffer("generated", embeddings["words"].detach()[list(generated)], persistent=False)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.say = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d, eps=1e-12))
        self.bias = nn.Parameter(torch.zeros(len(generated)))
        self.copy_query, self.copy_key = nn.Linear(d, d), nn.Linear(d, d, bias=False)
        self.gate = nn.Linear(2 * d, 1)
        self.follow = nn.Parameter(torch.ones(2))
        self.drop = nn.Dropout(config.dropout)

    def start(self, source: Source) -> Cache:
        """A cache of the questions before the first step."""
        cross = [layer.cross.keys_values(source.memory) for layer in self._layers()]
        return Cache(cross, [], self.copy_key(source.memory), source)

    def forward(self, source: Source, prefix: Tensor) -> Tensor:
        """(batch, steps, G + pieces): the probabilities of the next number after each piece of `prefix`,
        (batch, steps).
        """
        steps = prefix.shape[1]
        cache = self.start(source)
        causal = torch.ones(steps, steps, dtype=torch.bool, device=prefix.device).tril()
        masks = Masks(causal, source.mask[:, None, None])
        x = self._embedded(prefix, 0)
        for layer, cross in zip(self._layers(), cache.cross, strict=True):
            x = layer(x, layer.own.keys_values(x), cross, masks)
        earlier = nn.functional.pad(prefix[:, :-1], (1, 0), value=-1)
        return self._probabilities(x, cache, prefix, earlier)

    def step(self, cache: Cache, last: Tensor) -> Tensor:
        """(rows, G + pieces): the probabilities of the next number after the last piece of each row, (rows,);
        updates the cache.

        The rows are the hypotheses of the first question, then as many of the second, and so on.
        """
        n_steps = cache.own[0][0].shape[2] if cache.own else 0
        masks = Masks(None, cache.source.mask[:, None, None])
        x = self._embedded(last.unsqueeze(1), n_steps)
        previous, cache.own = cache.own, []
        for i, layer in enumerate(self._layers()):
            own = layer.own.keys_values(x)
            if previous:
                own = torch.cat([previous[i][0], own[0]], 2), torch.cat([previous[i][1], own[1]], 2)
            cache.own.append(own)
            x = layer(x, own, cache.cross[i], masks)
        earlier, cache.last = torch.full_like(last, -1) if cache.last is None else cache.last, last
        n = len(cache.source.mask)
        by_question = x.reshape(n, -1, x.shape[-1])
        return self._probabilities(by_question, cache, last.view(n, -1), earlier.view(n, -1)).flatten(0, 1)

    def _layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.layers))

    def _embedded(self, pieces: Tensor, first: int) -> Tensor:
        """Embeddings (rows, steps, dimension) of pieces (rows, steps), the first at position `first`."""
        x = self.words[pieces] + self.positions[first : first + pieces.shape[1]]
        norm: Any = self.norm
        dropped: Tensor = self.drop(nn.functional.layer_norm(x, x.shape[-1:], norm[0], norm[1], 1e-12))
        return dropped

    def _probabilities(self, x: Tensor, cache: Cache, last: Tensor, earlier: Tensor) -> Tensor:
        """(questions, steps, G + pieces) from states (questions, steps, dimension); `last` and `earlier`,
        (questions, steps): the last piece at each step and the one before it.
        """
        source = cache.source
        generated = (self.say(x) @ self.generated.T + self.bias).float().softmax(-1)
        copied, allowed = self._copy_attention(x, cache, last, earlier)
        context = copied.to(source.memory.dtype) @ source.memory
        with in_32_bits(x.device):
            gate = torch.sigmoid(
                self.gate(torch.cat([x, context.to(x.dtype)], -1).to(self.gate.weight.dtype))
            )
        gate = torch.where(allowed.any(-1, keepdim=True), gate, 1.0)
        numbers = source.copy_numbers.clamp(min=0).unsqueeze(1).expand_as(copied)
        probabilities = nn.functional.pad(gate * generated, (0, source.memory.shape[1]))
        return probabilities.scatter_add(-1, numbers, (1 - gate) * copied)

    def _copy_attention(
        self, x: Tensor, cache: Cache, last: Tensor, earlier: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The attention by which positions are copied, and whether they may be, (questions, steps, pieces)
        each; the attention is 0 where nothing may be copied.
        """
        source = cache.source
        scores = (self.copy_query(x) @ cache.copy_keys.transpose(1, 2)).float()
        scores = scores / math.sqrt(self.config.dimension)
        follows_last = last.unsqueeze(-1) == source.preceding[:, :1]
        follows_two = follows_last & (earlier.unsqueeze(-1) == source.preceding[:, 1:])
        scores = scores + self.follow[0] * follows_last + self.follow[1] * follows_two
        copyable = (source.mask & (source.copy_numbers >= 0)).unsqueeze(1)
        allowed = copyable & (follows_last | ~source.continues_word.unsqueeze(1))
        # Where no position is allowed, softmax would spread over all of them.
        return scores.masked_fill(~allowed, -1e9).softmax(-1) * allowed, allowed


def loss(probabilities: Tensor, targets: Tensor, generated: int, smoothing: float) -> Tensor:
    """Cross-entropy with label smoothing (ECL, Eq. 2 and 3), mean over the pieces of the batch.

    `probabilities`: (batch, steps, G + pieces); `targets`: (batch, steps) numbers, -1 where there is no
    target; `generated`: G, the size alpha of the vocabulary. The mass `smoothing` (lambda) is spread over the
    other pieces that may be generated; positions that can only be copied are not in the vocabulary and get
    none.
    """
    has_target = targets >= 0
    right = probabilities.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    losses = -(1 - smoothing) * right.clamp(min=TINY).log()
    if smoothing:
        logs = probabilities[..., :generated].clamp(min=TINY).log()
        own = torch.where(targets < generated, right.clamp(min=TINY).log(), 0.0)
        losses = losses - smoothing / max(1, generated - 1) * (logs.sum(-1) - own)
    return losses[has_target].mean() if bool(has_target.any()) else probabilities.sum() * 0
