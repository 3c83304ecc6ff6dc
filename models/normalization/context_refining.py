"""Dynamic Context Refining (CONORM-EN): a mention's own vector, refined by that of the sentence around it.

`S_isolated` reads the mention alone and makes the vectors of the terms too. `S_context`, whose vocabulary has
two more tokens, reads the sentence with [S] and [E] around the mention. Both are pooled by their masked mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.added_tokens import extend_embedding, extended_embedding
from models.encoder.model import Encoder
from models.text import sentences
from models.types import Query, Span

#: Characters on either side of a mention that are looked at for each piece of the window.
CHARACTERS_FOR_A_PIECE = 16


class DynamicContextRefining(nn.Module):
    """`e' = softmax([a, b]) . [e_isolated, e_context]` with the paper's names."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        # As a linear layer begins: a and b are then near 0, and both vectors count alike.
        bound = 1 / math.sqrt(dimension)
        self.M_K = nn.Parameter(torch.empty(dimension, dimension).uniform_(-bound, bound))
        self.M_Q = nn.Parameter(torch.empty(dimension, dimension).uniform_(-bound, bound))

    def forward(self, e_context: Tensor, e_isolated: Tensor) -> tuple[Tensor, Tensor]:
        """Both (n, d); gives e' (n, d) and the weight of the context, exp(b) / (exp(a) + exp(b)), (n,).

        a = e_isolated^T M_K M_Q e_isolated / sqrt(d), b = e_context^T M_K M_Q e_isolated / sqrt(d).
        """
        query = e_isolated @ self.M_Q.T @ self.M_K.T / math.sqrt(e_isolated.shape[-1])
        a, b = (e_isolated * query).sum(-1), (e_context * query).sum(-1)
        weights = torch.softmax(torch.stack([a, b], -1), -1)
        refined = weights[:, :1] * e_isolated + weights[:, 1:] * e_context
        return refined, weights[:, 1]


def context_encoder(encoder: Encoder, rows: Tensor | None, window: int) -> Encoder:
    """The encoder, changed in place, as S_context with these rows (2, d) of [S] and [E]; without rows both
    begin as the vocabulary's mean.
    """
    own = encoder.model.get_input_embeddings()
    if rows is None:
        rows = own.weight.detach().float().mean(0).repeat(2, 1)
    if rows.shape != (2, encoder.dimension):
        raise ValueError(f"the rows of [S] and [E] are {tuple(rows.shape)}, not (2, {encoder.dimension})")
    extend_embedding(encoder, own.num_embeddings, rows)
    return Encoder(encoder.model, encoder.tokenizer, window)


def start_and_end(context: Encoder) -> tuple[int, int]:
    """The numbers of [S] and [E]."""
    first = extended_embedding(context).first
    return first, first + 1


def sides(query: Query, window: int, spans: Sequence[Span]) -> tuple[str, str] | None:
    """What stands before and behind the mention in its sentence, one of `spans`; None where no word does."""
    holding = [s for s in spans if s.end > query.start and s.start < query.end]
    start = min([s.start for s in holding], default=query.start)
    end = max([s.end for s in holding], default=query.end)
    far = window * CHARACTERS_FOR_A_PIECE
    before = query.text[max(min(start, query.start), query.start - far) : query.start].strip()
    behind = query.text[query.end : min(max(end, query.end), query.end + far)].strip()
    return (before, behind) if any(map(str.isalnum, before + behind)) else None


def marked(encoder: Encoder, queries: Sequence[Query]) -> list[list[int] | None]:
    """Pieces of each query's sentence with [S] and [E] around the mention's surface, cut around it where they
    are more than the window takes; None for a mention without context.
    """
    spans = {text: sentences(text) for text in {q.text for q in queries}}
    contexts = [sides(q, encoder.max_pieces, spans[q.text]) for q in queries]
    pairs = [(q, c) for q, c in zip(queries, contexts, strict=True) if c is not None]
    texts = {t for q, (before, behind) in pairs for t in (before, q.surface.strip(), behind) if t}
    pieces: dict[str, list[int]] = {"": []}
    if order := sorted(texts):
        encoded: Any = encoder.tokenizer(
            order, add_special_tokens=False, return_attention_mask=False, verbose=False
        )
        pieces |= dict(zip(order, encoded["input_ids"], strict=True))
    start, end = start_and_end(encoder)
    made: list[list[int] | None] = []
    for query, context in zip(queries, contexts, strict=True):
        if context is None:
            made.append(None)
            continue
        before, mention, behind = pieces[context[0]], pieces[query.surface.strip()], pieces[context[1]]
        inside = [start, *mention[: encoder.max_pieces - 4], end]
        made.append(around(before, inside, behind, encoder.max_pieces - 2))
    return made


def around(before: list[int], inside: list[int], behind: list[int], limit: int) -> list[int]:
    """At most `limit` pieces with all of `inside`: half of what is left on each side, and what one side does
    not need to the other.
    """
    room = limit - len(inside)
    left = min(len(before), max(room // 2, room - len(behind)))
    return [*before[len(before) - left :], *inside, *behind[: room - left]]


class Refiner:
    """S_isolated, S_context and the matrices as they are served; a query's vector does not depend on its
    company.
    """

    def __init__(self, isolated: Encoder, context: Encoder, refining: DynamicContextRefining) -> None:
        self.isolated = isolated
        self.context = context
        self.refining = refining.eval()

    def embed(self, queries: Sequence[Query]) -> tuple[Tensor, list[float | None]]:
        """e' (queries, d), not of unit length, and each one's context weight: e_isolated and None where there
        is no context.
        """
        refined = self.isolated.mean_pooled([q.surface for q in queries]).clone()
        weights: list[float | None] = [None] * len(queries)
        sequences = {i: s for i, s in enumerate(marked(self.context, queries)) if s is not None}
        if not sequences:
            return refined, weights
        places = list(sequences)
        e_context, e_isolated = self.context.pool(list(sequences.values())), refined[places]
        if len(places) == 1:
            # A single row is multiplied in another way, which moves the last bits: it gets company.
            e_context, e_isolated = e_context.repeat(2, 1), e_isolated.repeat(2, 1)
        with torch.inference_mode():
            found, shares = self.refining(e_context, e_isolated)
            refined[places] = found[: len(places)]
        for i, share in zip(places, shares.tolist(), strict=False):
            weights[i] = share
        return refined, weights


def mean_pooled(encoder: Encoder, sequences: Sequence[Sequence[int]]) -> Tensor:
    """(sequences, d): the masked mean as `Encoder.pool` has it, with gradients and in one batch."""
    hidden = encoder.forward(sequences)
    lengths = torch.tensor([len(s) + 2 for s in sequences], device=hidden.device)
    mask = (torch.arange(hidden.shape[1], device=hidden.device) < lengths.unsqueeze(1)).unsqueeze(-1)
    return (hidden * mask).sum(1) / lengths.unsqueeze(1)


def tensors(refining: DynamicContextRefining, context: Encoder) -> dict[str, Tensor]:
    """What a release holds of them beside the adapter, in 16 bits."""
    named = {"M_K": refining.M_K, "M_Q": refining.M_Q, "tokens": extended_embedding(context).rows}
    return {name: t.detach().half().cpu().contiguous() for name, t in named.items()}


def refining_of(stored: dict[str, Tensor], dimension: int) -> DynamicContextRefining:
    """Raises ValueError where the matrices are not (d, d)."""
    refining = DynamicContextRefining(dimension)
    for name in ("M_K", "M_Q"):
        if stored[name].shape != (dimension, dimension):
            raise ValueError(f"{name} is {tuple(stored[name].shape)}, not ({dimension}, {dimension})")
    refining.load_state_dict({name: stored[name].float() for name in ("M_K", "M_Q")})
    return refining
