"""The `mini` architecture in training: an encoder of any family under a pointer-generator decoder."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.encoder.split.layers import Layers
from models.summarization.decoding import pointer_decoder
from models.summarization.decoding.beam_search import Search
from models.summarization.decoding.decoder_layers import DecoderConfig
from models.summarization.decoding.encoder_parts import (
    embeddings_of,
    initialise_from_encoder,
    inner_size,
)
from models.summarization.decoding.extended_vocabulary import ExtendedVocabulary
from models.summarization.decoding.generation import PointerWriter, Writer
from models.summarization.decoding.pointer_decoder import PointerDecoder
from models.summarization.decoding.source_pieces import source_of, source_pieces
from models.summarization.files import DECODER
from training.common import adapter
from training.summarization.networks.network import Encoded, KeyEncoder
from training.summarization.settings import Settings

#: A piece that is rarer in the training summaries can only be copied.
LEAST = 3


class PointerNetwork:
    """An encoder and a decoder that begins as the encoder's last layers."""

    name = "pointer"

    def __init__(self, settings: Settings, targets: Iterable[str], max_pieces: int) -> None:
        """`targets`: the summaries whose pieces the decoder may generate."""
        self.base = settings.backbone
        plain = Encoder.load(self.base, max_pieces=max_pieces)
        config = plain.model.config
        self.encoder = adapter.trainable(plain, settings.rank, dropout=0.0)
        encoder_layers = Layers(self.encoder.model)
        encoder_layers.freeze(encoder_layers.number - settings.trained_layers)
        # Dropout in the encoder's attention costs as much as the layers themselves on a processor.
        self.encoder.model.eval()
        layers, heads = settings.layers, config.num_attention_heads
        self.shape = DecoderConfig(config.hidden_size, layers, heads, inner_size(config))
        generated = generated_pieces(plain, targets)
        self.pieces = ExtendedVocabulary.of_encoder(plain, generated)
        # The trainer switches dropout on and off; a decoder that is restored without training has none.
        self.decoder = PointerDecoder(self.shape, embeddings_of(plain.model), generated).eval()
        last = config.num_hidden_layers
        initialise_from_encoder(self.decoder, plain.model, [max(0, last - layers + i) for i in range(layers)])

    def encode(self, texts: Sequence[str]) -> Encoded:
        return self._encode(self.encoder.model, texts)

    def _encode(self, model: Any, texts: Sequence[str]) -> Encoded:
        encoder = Encoder(model, self.encoder.tokenizer, self.encoder.max_pieces)
        sources = source_pieces(encoder, texts)
        hidden = encoder.forward(sources)
        lengths = torch.tensor([len(s) + 2 for s in sources], device=hidden.device).unsqueeze(1)
        places = torch.arange(hidden.shape[1], device=hidden.device).unsqueeze(0)
        return Encoded(hidden, places < lengths, sources)

    def cross_entropy(self, questions: Encoded, summaries: Sequence[str], smoothing: float) -> Tensor:
        limit = self.shape.longest - 2
        texts = [s[:limit] for s in source_pieces(self.encoder, summaries)]
        steps = max(len(t) for t in texts) + 1
        inputs = torch.full((len(texts), steps), self.pieces.end)
        targets = torch.full((len(texts), steps), -1)
        for row, (text, source) in enumerate(zip(texts, questions.pieces, strict=True)):
            inputs[row, : len(text) + 1] = torch.tensor([self.pieces.begin, *text])
            whole = [self.pieces.begin, *source, self.pieces.end]
            targets[row, : len(text) + 1] = torch.tensor(self.pieces.targets(text, whole))
        source = source_of(self.encoder, self.pieces, questions.pieces, questions.states)
        device = questions.states.device
        probabilities = self.decoder(source, inputs.to(device))
        return pointer_decoder.loss(probabilities, targets.to(device), len(self.pieces), smoothing)

    def key_encoder(self) -> KeyEncoder:
        return KeyEncoder(copy.deepcopy(self.encoder.model), self._encode)

    def encoder_state(self) -> dict[str, Tensor]:
        return {n: p for n, p in self.encoder.model.named_parameters() if p.requires_grad}

    def parts(self) -> list[nn.Module]:
        return [self.encoder.model, self.decoder]

    def writer(self, search: Search) -> Writer:
        return PointerWriter(self.encoder, self.decoder, self.pieces, search)

    def files(self) -> dict[str, dict[str, Tensor]]:
        stored = {n: t.detach().half().cpu().contiguous() for n, t in self.decoder.state_dict().items()}
        stored["generated"] = torch.tensor(self.pieces.generated, dtype=torch.int32)
        return adapter.files(self.encoder.model) | {DECODER: stored}

    def configuration(self) -> dict[str, Any]:
        return {"decoder": asdict(self.shape)}


def generated_pieces(encoder: Encoder, targets: Iterable[str], least: int = LEAST) -> list[int]:
    """The end, then the pieces that occur at least so often in the targets, by number."""
    counts = Counter(p for pieces in source_pieces(encoder, list(targets)) for p in pieces)
    end, unknown = encoder.ends[1], encoder.tokenizer.unk_token_id
    return [end, *sorted(p for p, n in counts.items() if n >= least and p not in (end, unknown))]
