"""An encoder-decoder of the hub in training, and the choice between both kinds of network."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.capabilities import is_encoder_decoder
from models.summarization.decoding.beam_search import Search
from models.summarization.decoding.generation import Writer
from models.summarization.decoding.hub_generation import HubWriter, hub_source, load_hub
from models.summarization.files import CHANGED
from training.summarization.data import Corpora
from training.summarization.networks.network import Encoded, KeyEncoder, Network
from training.summarization.networks.pointer_network import PointerNetwork
from training.summarization.settings import Settings

#: Of a question, the pieces that open and close it included.
MAX_PIECES = 256


class HubNetwork:
    """Any encoder-decoder of `transformers`: BART, T5, PEGASUS."""

    name = "hub"

    def __init__(self, base: str, *, max_pieces: int) -> None:
        self.base = base
        self.model, self.tokenizer = load_hub(base)
        self.max_pieces = max_pieces

    def encode(self, texts: Sequence[str]) -> Encoded:
        return self._encode(self.model.get_encoder(), texts)

    def _encode(self, encoder: Any, texts: Sequence[str]) -> Encoded:
        tokens = self.tokens(texts)
        states = encoder(**tokens).last_hidden_state
        return Encoded(states, tokens["attention_mask"].bool(), tokens["attention_mask"])

    def tokens(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """Padded `input_ids` and `attention_mask`, each (texts, pieces)."""
        source = hub_source(self.tokenizer, texts, self.max_pieces)
        return {name: source[name].to(self.model.device) for name in ("input_ids", "attention_mask")}

    def cross_entropy(self, questions: Encoded, summaries: Sequence[str], smoothing: float) -> Tensor:
        tokens = self.tokens(summaries)
        labels = tokens["input_ids"].masked_fill(tokens["attention_mask"] == 0, -100)
        states, mask = (questions.states,), questions.pieces
        logits = self.model(encoder_outputs=states, attention_mask=mask, labels=labels).logits
        # torch spreads the mass over all words, the right one among them; Eq. 3 over the others.
        words = logits.shape[-1]
        return nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), label_smoothing=smoothing * words / (words - 1)
        )

    def key_encoder(self) -> KeyEncoder:
        return KeyEncoder(copy.deepcopy(self.model.get_encoder()), self._encode)

    def encoder_state(self) -> dict[str, Tensor]:
        return {n: p for n, p in self.model.get_encoder().named_parameters() if p.requires_grad}

    def parts(self) -> list[nn.Module]:
        return [self.model]

    def writer(self, search: Search) -> Writer:
        return HubWriter(self.model, self.tokenizer, search, self.max_pieces)

    def files(self) -> dict[str, dict[str, Tensor]]:
        # Tied weights are one parameter under one name.
        changed = {n: p.detach().half().cpu().contiguous() for n, p in self.model.named_parameters()}
        return {CHANGED: changed}

    def configuration(self) -> dict[str, Any]:
        return {}


def network_of(settings: Settings, corpora: Corpora) -> Network:
    """An untrained network, the same for the same seed."""
    torch.manual_seed(settings.seed)
    if is_encoder_decoder(settings.backbone):
        return HubNetwork(settings.backbone, max_pieces=MAX_PIECES)
    targets = [p.summary for p in (*corpora.pretraining, *corpora.training)]
    return PointerNetwork(settings, targets, MAX_PIECES)
