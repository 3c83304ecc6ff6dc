"""What the trainer requires of a network, and the key encoder of the contrastive losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from models.summarization.decoding.beam_search import Search
from models.summarization.decoding.generation import Writer
from training.common.batching import by_length

#: Texts that the key encoder reads together.
KEY_BATCH = 64


class Encoded(NamedTuple):
    """A batch of texts after the encoder."""

    states: Tensor
    """(batch, pieces, dimension)"""
    mask: Tensor
    """(batch, pieces), True where there is a piece"""
    pieces: Any
    """what else the network needs to compute its cross-entropy"""


class Network(Protocol):
    """An encoder and a decoder in training."""

    name: str
    base: str

    def encode(self, texts: Sequence[str]) -> Encoded: ...

    def cross_entropy(self, questions: Encoded, summaries: Sequence[str], smoothing: float) -> Tensor:
        """Label-smoothed, mean over pieces (ECL, Eq. 2 and 3)."""

    def key_encoder(self) -> KeyEncoder:
        """A copy of the encoder as it is now."""

    def encoder_state(self) -> dict[str, Tensor]:
        """The trained tensors of the encoder, which the key encoder follows."""

    def parts(self) -> list[nn.Module]:
        """The modules that are trained, that with the decoder last."""

    def writer(self, search: Search) -> Writer: ...

    def files(self) -> dict[str, dict[str, Tensor]]:
        """File name to tensors of a release, in 16 bits."""

    def configuration(self) -> dict[str, Any]: ...


class KeyEncoder:
    """MoCo's key encoder: an exponential moving average of the encoder, without gradients (ECL, Eq. 4)."""

    def __init__(self, model: nn.Module, encode: Callable[[Any, Sequence[str]], Encoded]) -> None:
        """`encode`: texts by a model."""
        self.model = model.requires_grad_(False).eval()
        self._encode = encode

    @torch.no_grad()
    def follow(self, state: dict[str, Tensor], momentum: float) -> None:
        """theta_k <- m theta_k + (1 - m) theta_q, over the trained tensors."""
        own = dict(self.model.named_parameters())
        for name, tensor in state.items():
            own[name].lerp_(tensor.detach(), 1 - momentum)

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        """(texts, dimension) unit vectors; texts of similar length are encoded together."""
        keys: list[Tensor] = [torch.empty(0)] * len(texts)
        for rows in by_length([len(t) for t in texts], KEY_BATCH):
            vectors = pooled(self._encode(self.model, [texts[i] for i in rows]))
            for i, vector in zip(rows, vectors, strict=True):
                keys[i] = vector
        return torch.stack(keys)


def pooled(encoded: Encoded) -> Tensor:
    """(batch, dimension): mean of the states of the pieces, of unit length; padding does not count."""
    mask = encoded.mask.unsqueeze(-1).to(encoded.states.dtype)
    mean = (encoded.states * mask).sum(1) / mask.sum(1).clamp(min=1)
    return nn.functional.normalize(mean.float(), dim=-1)
