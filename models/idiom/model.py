"""Vectors of sentences in which an idiom lies near what it means, not near what its words mean.

After He et al. 2024, Enhancing Idiomatic Representation in Multiple Languages via an Adaptive Contrastive
Triplet Loss.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import torch
from tokenizers import AddedToken
from torch import Tensor, nn

from models.encoder.added_tokens import ExtendedEmbedding, extend_embedding
from models.encoder.model import Encoder, encoder_of
from models.releases.manifest import Release
from models.releases.tensors import read_tensors

#: Rows of the added tokens, in the order of the configuration's expressions.
TOKENS = "tokens.safetensors"
LAST, LAST_TWO = "last", "last_two"
POOLINGS = (LAST, LAST_TWO)


class Marker:
    """Writes every occurrence of an expression as one token, `home run` as `IDhomerunID` (section 4.1).

    Case, hyphens and an English plural are no difference.
    """

    def __init__(self, expressions: Sequence[str]) -> None:
        self.expressions = tuple(expressions)
        self.tokens = tuple(token(e) for e in self.expressions)
        self._token = {e.lower(): t for e, t in zip(self.expressions, self.tokens, strict=True)}
        # The longest first: regular expressions take the first alternative that fits.
        longest = sorted((e.lower().split() for e in self.expressions), key=len, reverse=True)
        patterns = [r"[\s-]+".join(map(re.escape, words)) for words in longest]
        self._pattern = (
            re.compile(rf"\b({'|'.join(patterns)})(?:e?s)?\b", re.IGNORECASE) if patterns else None
        )

    def mark(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda m: self._token[re.sub(r"[\s-]+", " ", m[1]).lower()], text)


def token(expression: str) -> str:
    """The added token of an expression."""
    return f"ID{''.join(expression.split())}ID"


def add_tokens(encoder: Encoder, tokens: Sequence[str], rows: Tensor) -> ExtendedEmbedding:
    """Adds tokens with their rows (tokens, dimension) to an encoder whose model nobody shares."""
    if rows.shape != (len(tokens), encoder.dimension):
        raise ValueError(
            f"{len(tokens)} tokens of dimension {encoder.dimension} have rows {tuple(rows.shape)}"
        )
    first = len(encoder.tokenizer)
    added = encoder.tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in tokens])
    if added != len(tokens):
        raise ValueError("a token to be added is in the vocabulary already, or twice in the list")
    return extend_embedding(encoder, first, rows)


class LastTwo(nn.Module):
    """A model whose last hidden state is the mean of its last two, so that an encoder pools both."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.config = model.config

    @property
    def device(self) -> torch.device:
        return cast(torch.device, self.model.device)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        states = self.model(
            input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True
        ).hidden_states
        return SimpleNamespace(last_hidden_state=(states[-1] + states[-2]) / 2)


def with_pooling(encoder: Encoder, pooling: str) -> Encoder:
    """The same encoder with the mean over a text's pieces taken of the last layer, or of the last two."""
    if pooling not in POOLINGS:
        raise ValueError(f"no pooling {pooling!r}: {', '.join(POOLINGS)}")
    plain = encoder.model.model if isinstance(encoder.model, LastTwo) else encoder.model
    model = LastTwo(plain) if pooling == LAST_TWO else plain
    return Encoder(model, encoder.tokenizer, encoder.max_pieces)


class IdiomModel:
    """Unit vectors of texts; their cosine is how alike they are in meaning."""

    task = "idiom"

    def __init__(self, encoder: Encoder, marker: Marker, base: str, pooling: str) -> None:
        self.encoder = encoder
        self.marker = marker
        self.base = base
        self.pooling = pooling

    @classmethod
    def load(cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> IdiomModel:
        """Raises ReleaseError when the base is another one than the release was trained on."""
        configuration = release.manifest.configuration
        encoder = encoder_of(release, device=device, dtype=dtype)
        marker = Marker(configuration["expressions"])
        if marker.tokens:
            # The weights of a release without an adapter are shared by every encoder of its base.
            encoder = Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces)
            add_tokens(encoder, marker.tokens, read_tensors(release.file(TOKENS))["rows"])
        pooling = configuration["pooling"]
        return cls(with_pooling(encoder, pooling), marker, release.manifest.base, pooling)

    def predict(self, batch: Sequence[str]) -> Tensor:
        """(texts, dimension) unit vectors; the expressions that have a token are marked first."""
        return self.encoder.embed([self.marker.mark(text) for text in batch])

    def untrained(self) -> IdiomModel:
        """The base with the same pooling and nothing marked."""
        encoder = Encoder.load(self.base, max_pieces=self.encoder.max_pieces)
        return IdiomModel(with_pooling(encoder, self.pooling), Marker([]), self.base, self.pooling)
