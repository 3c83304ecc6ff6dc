"""Sentence vectors in which an idiom is near its meaning, not near the literal meaning of its words.

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

from models.encoder.added_tokens import ExtendedEmbedding, embedding_dimension, extend_embedding
from models.encoder.model import Encoder, encoder_of
from models.encoder.packed.bert import PackedBert
from models.releases.manifest import Release
from models.releases.tensors import read_tensors

#: File of the added tokens' embeddings, in the order of the configuration's expressions.
TOKENS = "tokens.safetensors"
LAST, LAST_TWO = "last", "last_two"
POOLINGS = (LAST, LAST_TWO)
#: What may stand between two words of an expression.
_WHITE = re.compile(r"[\s-]+")


class Marker:
    """Replaces each occurrence of an expression by one token, `home run` by `IDhomerunID` (section 4.1).

    Expressions are found in any case, with hyphens for spaces, and with an English plural ending.
    """

    def __init__(self, expressions: Sequence[str]) -> None:
        self.expressions = tuple(expressions)
        self.tokens = tuple(idiom_token(e) for e in self.expressions)
        self._token = {_key(e): t for e, t in zip(self.expressions, self.tokens, strict=True)}
        # The longest first, because a regular expression matches the first alternative that fits.
        longest = sorted(self.expressions, key=lambda e: len(_WHITE.split(e.strip())), reverse=True)
        spellings = {e: r"[\s-]+".join(map(re.escape, _WHITE.split(e.lower().strip()))) for e in longest}
        self._pattern = (
            re.compile(_whole_words("|".join(spellings.values())), re.IGNORECASE) if spellings else None
        )
        #: The same as a pattern and a token for each expression, to be replaced one after the other.
        self.patterns = [(_whole_words(s), self._token[_key(e)]) for e, s in spellings.items()]

    def mark(self, text: str) -> str:
        """The text with the tokens in place of the expressions."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda m: self._token[_key(m[1])], text)


def _whole_words(spelling: str) -> str:
    return rf"\b({spelling})(?:e?s)?\b"


def _key(expression: str) -> str:
    """Equal for what is written with hyphens or spaces, in any case."""
    return " ".join(_WHITE.split(expression.casefold().strip()))


def idiom_token(expression: str) -> str:
    """The token that is added to the vocabulary for an expression."""
    return f"ID{''.join(expression.split())}ID"


def add_tokens(encoder: Encoder, tokens: Sequence[str], rows: Tensor) -> ExtendedEmbedding | None:
    """Adds tokens with the embeddings `rows` (tokens, dimension of the embeddings) to an encoder, in place;
    its model and tokenizer must not be shared with another encoder.

    Raises ValueError when the rows have another shape, or a token is in the vocabulary or twice in the list.
    """
    dimension = embedding_dimension(encoder)
    if rows.shape != (len(tokens), dimension):
        raise ValueError(f"{len(tokens)} tokens of dimension {dimension} have rows {tuple(rows.shape)}")
    first = len(encoder.tokenizer)
    added = encoder.tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in tokens])
    if added != len(tokens):
        raise ValueError("a token is in the vocabulary already, or twice in the list")
    return extend_embedding(encoder, first, rows)


class LastTwoLayers(nn.Module):
    """A model that returns the mean of its last two layers' hidden states as the last hidden state."""

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
    """The same encoder with pooling over the last layer (`last`) or the mean of the last two (`last_two`).

    Raises ValueError for another name.
    """
    if pooling not in POOLINGS:
        raise ValueError(f"no pooling {pooling!r}: {', '.join(POOLINGS)}")
    plain = encoder.model.model if isinstance(encoder.model, LastTwoLayers) else encoder.model
    model = LastTwoLayers(plain) if pooling == LAST_TWO else plain
    return Encoder(model, encoder.tokenizer, encoder.max_pieces)


class IdiomModel:
    """Unit vectors of texts, whose cosine measures how similar the texts are in meaning."""

    task = "idiom"

    def __init__(self, encoder: Encoder, marker: Marker, base: str, pooling: str) -> None:
        self.encoder = encoder
        self.marker = marker
        self.base = base
        self.pooling = pooling

    @classmethod
    def load(cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> IdiomModel:
        """Raises ReleaseError when the installed base is not the one the release was trained on."""
        configuration = release.manifest.configuration
        pooling = configuration["pooling"]
        encoder = encoder_of(release, device=device, dtype=dtype, packed=pooling == LAST)
        marker = Marker(configuration["expressions"])
        if marker.tokens:
            # The tokenizer is shared by all encoders of its base, and without an adapter the model too.
            model = encoder.model if isinstance(encoder.model, PackedBert) else copy.deepcopy(encoder.model)
            encoder = Encoder(model, copy.deepcopy(encoder.tokenizer), encoder.max_pieces)
            add_tokens(encoder, marker.tokens, read_tensors(release.file(TOKENS))["rows"])
        return cls(with_pooling(encoder, pooling), marker, release.manifest.base, pooling)

    def predict(self, batch: Sequence[str]) -> Tensor:
        """(texts, dimension) unit vectors of the texts with their idioms replaced by tokens."""
        return self.encoder.embed([self.marker.mark(text) for text in batch])

    def untrained(self) -> IdiomModel:
        """The untrained baseline: the base with the same pooling, without added tokens."""
        device, limit = str(self.encoder.model.device), self.encoder.max_pieces
        encoder = Encoder.load(self.base, device=device, max_pieces=limit)
        return IdiomModel(with_pooling(encoder, self.pooling), Marker([]), self.base, self.pooling)
