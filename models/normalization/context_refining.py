"""Dynamic Context Refining (CONORM-EN): the vector of a mention, refined by that of the sentence around it.

`S_isolated` encodes the mention alone, and also the terms. `S_context` encodes the sentence with the added
tokens [S] and [E] around the mention. Both vectors are the masked mean over their pieces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.added_tokens import extend_embedding, extended_embedding, first_added
from models.encoder.model import Encoder
from models.encoder.packed.bert import PackedBert
from models.encoder.weights import ADAPTER, check_base
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.rules.sentences import sentences
from models.types import Query, Span

#: Matrices and rows of [S] and [E]; the adapter of S_context is in the release's ADAPTER.
DCR = "dcr.safetensors"
#: The adapter of S_isolated, if it was trained.
ISOLATED = "isolated.safetensors"
#: Characters on each side of a mention that are tokenized, per piece of the window.
CHARACTERS_PER_PIECE = 16


class DynamicContextRefining(nn.Module):
    """`e' = softmax([a, b]) . [e_isolated, e_context]`, with the names of CONORM."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        # Initialised like a linear layer: a and b are then near 0 and both vectors have a weight near 1/2.
        bound = 1 / math.sqrt(dimension)
        self.M_K = nn.Parameter(torch.empty(dimension, dimension).uniform_(-bound, bound))
        self.M_Q = nn.Parameter(torch.empty(dimension, dimension).uniform_(-bound, bound))

    def forward(self, e_context: Tensor, e_isolated: Tensor) -> tuple[Tensor, Tensor]:
        """From both vectors (n, d): e' (n, d) and the weight of the context exp(b) / (exp(a) + exp(b)), (n,).

        a = e_isolated^T M_K M_Q e_isolated / sqrt(d), b = e_context^T M_K M_Q e_isolated / sqrt(d).
        """
        query = e_isolated @ self.M_Q.T @ self.M_K.T / math.sqrt(e_isolated.shape[-1])
        a, b = (e_isolated * query).sum(-1), (e_context * query).sum(-1)
        weights = torch.softmax(torch.stack([a, b], -1), -1)
        refined = weights[:, :1] * e_isolated + weights[:, 1:] * e_context
        return refined, weights[:, 1]


def context_encoder(encoder: Encoder, rows: Tensor | None, window: int) -> Encoder:
    """S_context with a window of `window` pieces, made from an encoder whose model is changed in place: it
    gets the embeddings `rows` (2, d) of [S] and [E], for training by default both the mean of the vocabulary.

    Raises ValueError when the rows have another shape.
    """
    if isinstance(encoder.model, PackedBert):
        first, dimension = encoder.model.vocabulary_size, encoder.dimension
    else:
        embedding = encoder.model.get_input_embeddings()
        first, dimension = embedding.num_embeddings, embedding.embedding_dim
        if rows is None:
            rows = embedding.weight.detach().float().mean(0).repeat(2, 1)
    assert rows is not None, "a packed encoder is not trained"
    if rows.shape != (2, dimension):
        raise ValueError(f"the rows of [S] and [E] are {tuple(rows.shape)}, not (2, {dimension})")
    extend_embedding(encoder, first, rows)
    return Encoder(encoder.model, encoder.tokenizer, window)


def marker_tokens(context: Encoder) -> tuple[int, int]:
    """The token numbers of [S] and [E]."""
    first = first_added(context)
    return first, first + 1


def context_of(query: Query, window: int, spans: Sequence[Span]) -> tuple[str, str] | None:
    """The text before and the text after the mention in its sentence, where `spans` are the sentences of the
    query's text; None where there is no word in it.
    """
    overlapping = [s for s in spans if s.end > query.start and s.start < query.end]
    start = min([s.start for s in overlapping], default=query.start)
    end = max([s.end for s in overlapping], default=query.end)
    far = window * CHARACTERS_PER_PIECE
    before = query.text[max(min(start, query.start), query.start - far) : query.start].strip()
    after = query.text[query.end : min(max(end, query.end), query.end + far)].strip()
    return (before, after) if any(map(str.isalnum, before + after)) else None


def marked_sentences(encoder: Encoder, queries: Sequence[Query]) -> list[list[int] | None]:
    """The pieces of each query's sentence with [S] and [E] around the mention's surface form, cut on both
    sides to the window of S_context, `encoder`; None for a mention without context.
    """
    spans = {text: sentences(text) for text in {q.text for q in queries}}
    contexts = [context_of(q, encoder.max_pieces, spans[q.text]) for q in queries]
    pairs = [(q, c) for q, c in zip(queries, contexts, strict=True) if c is not None]
    texts = {t for q, (before, after) in pairs for t in (before, q.surface.strip(), after) if t}
    pieces: dict[str, list[int]] = {"": []}
    if order := sorted(texts):
        encoded: Any = encoder.tokenizer(
            order, add_special_tokens=False, return_attention_mask=False, verbose=False
        )
        pieces |= dict(zip(order, encoded["input_ids"], strict=True))
    start, end = marker_tokens(encoder)
    sequences: list[list[int] | None] = []
    for query, context in zip(queries, contexts, strict=True):
        if context is None:
            sequences.append(None)
            continue
        before, mention, after = pieces[context[0]], pieces[query.surface.strip()], pieces[context[1]]
        inside = [start, *mention[: encoder.max_pieces - 4], end]
        sequences.append(cut_around(before, inside, after, encoder.max_pieces - 2))
    return sequences


def cut_around(before: list[int], inside: list[int], after: list[int], limit: int) -> list[int]:
    """At most `limit` pieces: all of `inside`, and half of the remaining room on each side; room that one
    side does not need is used by the other.
    """
    room = limit - len(inside)
    left = min(len(before), max(room // 2, room - len(after)))
    return [*before[len(before) - left :], *inside, *after[: room - left]]


class Refiner:
    """S_isolated, S_context and the matrices in inference, batch-invariant: in two batches the vectors of a
    query are equal to 1e-5, and in all bits where the processor allows it (see models/encoder/model.py).
    """

    def __init__(
        self, isolated: Encoder, context: Encoder, refining: DynamicContextRefining, words: int = 0
    ) -> None:
        """Only mentions of at most `words` words are read in their sentence; 0: all."""
        self.isolated = isolated
        self.context = context
        self.words = words
        self.refining = refining.eval()

    def reads(self, surface: str) -> bool:
        """Whether a mention is short enough that its sentence is asked."""
        return not self.words or len(surface.split()) <= self.words

    def embed(
        self, queries: Sequence[Query], e_isolated: Sequence[Tensor]
    ) -> tuple[list[int], Tensor, list[float]]:
        """The places of the queries with a context, e' of each (places, d), not of unit length, and the
        weight of its context. `e_isolated`: (d,) of each query's surface form, by S_isolated.
        """
        marked = marked_sentences(self.context, queries)
        sequences = {i: s for i, s in enumerate(marked) if s is not None}
        if not sequences:
            return [], torch.zeros((0, self.isolated.dimension)), []
        places = list(sequences)
        # The product of a single row has other last bits: the row is computed twice.
        rows = places * 2 if len(places) == 1 else places
        e_context = self.context.pool([sequences[i] for i in rows])
        with torch.inference_mode():
            vectors, shares = self.refining(e_context, torch.stack([e_isolated[i] for i in rows]))
        return places, vectors[: len(places)], shares[: len(places)].tolist()


def pool_with_gradients(encoder: Encoder, sequences: Sequence[Sequence[int]]) -> Tensor:
    """(sequences, d): the masked mean as in `Encoder.pool`, in one batch and with gradients."""
    hidden = encoder.forward(sequences)
    lengths = torch.tensor([len(s) + 2 for s in sequences], device=hidden.device)
    mask = (torch.arange(hidden.shape[1], device=hidden.device) < lengths.unsqueeze(1)).unsqueeze(-1)
    return (hidden * mask).sum(1) / lengths.unsqueeze(1)


def stored_tensors(refining: DynamicContextRefining, context: Encoder) -> dict[str, Tensor]:
    """The matrices and the rows of [S] and [E] in 16 bits, as a release stores them."""
    named = {"M_K": refining.M_K, "M_Q": refining.M_Q, "tokens": extended_embedding(context).rows}
    return {name: t.detach().half().cpu().contiguous() for name, t in named.items()}


def refining_of(stored: dict[str, Tensor], dimension: int) -> DynamicContextRefining:
    """The matrices of `stored_tensors`; raises ValueError when they are not (dimension, dimension)."""
    refining = DynamicContextRefining(dimension)
    for name in ("M_K", "M_Q"):
        if stored[name].shape != (dimension, dimension):
            raise ValueError(f"{name} is {tuple(stored[name].shape)}, not ({dimension}, {dimension})")
    refining.load_state_dict({name: stored[name].float() for name in ("M_K", "M_Q")})
    return refining


def load_refiner(release: Release, device: str, dtype: torch.dtype) -> Refiner:
    """S_context with its trained parts, and S_isolated, which is its base or has an adapter; the two may have
    different bases. Raises ReleaseError where S_context was not trained or a base is another one.
    """
    manifest, settings = release.manifest, release.manifest.configuration
    context_base = settings.get("context_base", manifest.base)
    bases = {context_base: settings.get("context_base_sha256"), manifest.base: manifest.base_sha256}
    for base, digest in bases.items():
        check_base(base, digest, release.version)
    parts = {n: release.file(n) if n in manifest.files else None for n in (ADAPTER, ISOLATED)}
    if parts[ADAPTER] is None:
        raise ReleaseError(f"{release.version}: {DCR} without a trained S_context")
    common: dict[str, Any] = {"device": device, "dtype": dtype, "max_pieces": settings["max_pieces"]}
    isolated = Encoder.for_inference(manifest.base, adapter=parts[ISOLATED], **common)
    context = Encoder.for_inference(context_base, adapter=parts[ADAPTER], **common)
    stored = read_tensors(release.file(DCR))
    return Refiner(
        isolated,
        context_encoder(context, stored["tokens"], settings["window"]),
        refining_of(stored, isolated.dimension),
        settings.get("context_words", 0),
    )
