"""The network of ECL: an encoder-decoder of the hub in training, and MoCo's key encoder."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from training.common.batching import by_length
from training.summarization.decoder import Decoder, Search, encoder_decoder, pieces_of

#: Of a question, the pieces that open and close it included.
MAX_PIECES = 256
#: Texts that the key encoder reads together.
KEY_BATCH = 64


class Encoded(NamedTuple):
    """A batch of texts after the encoder."""

    states: Tensor
    """(batch, pieces, dimension)"""
    mask: Tensor
    """(batch, pieces), 1 where there is a piece"""


class Network:
    """Any encoder-decoder of `transformers`, such as BART or T5."""

    def __init__(self, base: str, max_pieces: int = MAX_PIECES) -> None:
        self.base, self.max_pieces = base, max_pieces
        self.model, self.tokenizer = encoder_decoder(base)

    def encode(self, texts: Sequence[str], encoder: Any = None) -> Encoded:
        """By the network's encoder, or by another one of its kind."""
        tokens = self.tokens(texts)
        states = (encoder or self.model.get_encoder())(**tokens).last_hidden_state
        return Encoded(states, tokens["attention_mask"])

    def tokens(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """Padded `input_ids` and `attention_mask`, each (texts, pieces)."""
        source = pieces_of(self.tokenizer, texts, self.max_pieces)
        return {name: source[name].to(self.model.device) for name in ("input_ids", "attention_mask")}

    def cross_entropy(self, questions: Encoded, summaries: Sequence[str], smoothing: float) -> Tensor:
        """Label-smoothed, mean over pieces (Eq. 2 and 3)."""
        tokens = self.tokens(summaries)
        labels = tokens["input_ids"].masked_fill(tokens["attention_mask"] == 0, -100)
        logits = self.model(
            encoder_outputs=(questions.states,), attention_mask=questions.mask, labels=labels
        ).logits
        # torch spreads the mass over all words, the right one among them; Eq. 3 over the others.
        words = logits.shape[-1]
        return nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), label_smoothing=smoothing * words / (words - 1)
        )

    def encoder_state(self) -> dict[str, Tensor]:
        """The trained tensors of the encoder, which the key encoder follows."""
        return {n: p for n, p in self.model.get_encoder().named_parameters() if p.requires_grad}

    def decoder(self, search: Search) -> Decoder:
        return Decoder(self.model, self.tokenizer, search, self.max_pieces)

    def weights(self) -> dict[str, Tensor]:
        """All weights in 16 bits; tied ones are one parameter under one name."""
        return {n: p.detach().half().cpu().contiguous() for n, p in self.model.named_parameters()}


class KeyEncoder:
    """MoCo's key encoder: an exponential moving average of the encoder, without gradients (Eq. 4)."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.model = copy.deepcopy(network.model.get_encoder()).requires_grad_(False).eval()

    @torch.no_grad()
    def follow(self, state: Mapping[str, Tensor], momentum: float) -> None:
        """theta_k <- m theta_k + (1 - m) theta_q, over the trained tensors."""
        own = dict(self.model.named_parameters())
        for name, tensor in state.items():
            own[name].lerp_(tensor.detach(), 1 - momentum)

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        """(texts, dimension) unit vectors; texts of similar length are encoded together."""
        keys: list[Tensor] = [torch.empty(0)] * len(texts)
        for rows in by_length([len(t) for t in texts], KEY_BATCH):
            vectors = pooled(self._network.encode([texts[i] for i in rows], self.model))
            for i, vector in zip(rows, vectors, strict=True):
                keys[i] = vector
        return torch.stack(keys)


def pooled(encoded: Encoded) -> Tensor:
    """(batch, dimension): mean of the states of the pieces, of unit length; padding does not count."""
    mask = encoded.mask.unsqueeze(-1).to(encoded.states.dtype)
    mean = (encoded.states * mask).sum(1) / mask.sum(1).clamp(min=1)
    return nn.functional.normalize(mean.float(), dim=-1)
