"""What is trained: MiniLM (or another encoder) under a pointer decoder, or an encoder-decoder of the hub;
both answer the same questions of the trainer.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.summarization import pointer_decoder
from models.summarization.beam_search import Search
from models.summarization.decoder_layers import DecoderConfig
from models.summarization.extended_vocabulary import ExtendedVocabulary
from models.summarization.generation import DECODER, PointerWriter, Writer
from models.summarization.hub_generation import CHANGED, HubWriter, hub_source, load_hub
from models.summarization.pointer_decoder import PointerDecoder
from models.summarization.source_pieces import source_of, source_pieces
from training.common import adapter


class Read(NamedTuple):
    """Questions as the encoder sees them."""

    states: Tensor
    """(batch, pieces, dimension)"""
    mask: Tensor
    """(batch, pieces), True where there is a piece"""
    pieces: Any
    """what the network needs besides to compute its cross-entropy"""


class Network(Protocol):
    """An encoder and a decoder in training."""

    name: str
    base: str

    def read(self, texts: Sequence[str]) -> Read: ...

    def cross_entropy(self, read: Read, summaries: Sequence[str], smoothing: float) -> Tensor:
        """Label-smoothed, mean over pieces (ECL, Eq. 2 and 3)."""

    def key_encoder(self) -> KeyEncoder:
        """A copy of the encoder as it is now."""

    def encoder_state(self) -> dict[str, Tensor]:
        """The trained tensors of the encoder, by which the key encoder follows."""

    def parts(self) -> list[nn.Module]: ...

    def writer(self, search: Search) -> Writer: ...

    def files(self) -> dict[str, dict[str, Tensor]]:
        """File name to tensors of a release, in 16 bits."""

    def configuration(self) -> dict[str, Any]: ...


class KeyEncoder:
    """MoCo's key encoder: it is never trained, it follows (ECL, Eq. 4)."""

    def __init__(self, model: nn.Module, read: Any) -> None:
        self.model = model.requires_grad_(False).eval()
        self._read = read

    @torch.no_grad()
    def follow(self, state: dict[str, Tensor], momentum: float) -> None:
        """theta_k <- m theta_k + (1 - m) theta_q, over what is trained."""
        own = dict(self.model.named_parameters())
        for name, tensor in state.items():
            own[name].lerp_(tensor.detach(), 1 - momentum)

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        """(texts, dimension) unit vectors; those of like length are read together."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        out: list[Tensor] = [torch.empty(0)] * len(texts)
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            for i, vector in zip(rows, pooled(self._read(self.model, [texts[i] for i in rows])), strict=True):
                out[i] = vector
        return torch.stack(out)


def pooled(read: Read) -> Tensor:
    """(batch, dimension): mean of the states of the pieces, of unit length; padding does not count."""
    mask = read.mask.unsqueeze(-1).to(read.states.dtype)
    mean = (read.states * mask).sum(1) / mask.sum(1).clamp(min=1)
    return nn.functional.normalize(mean.float(), dim=-1)


class PointerNetwork:
    """The `mini` architecture, over any encoder; the decoder begins as the encoder's last layers where it has
    BERT's shape.
    """

    name = "pointer"

    def __init__(
        self,
        base: str,
        *,
        layers: int,
        rank: int,
        trained_layers: int,
        targets: Iterable[str],
        max_pieces: int,
    ) -> None:
        """`targets`: the summaries whose pieces the decoder may generate."""
        self.base = base
        plain = Encoder.load(base, max_pieces=max_pieces)
        config = plain.model.config
        self.encoder = adapter.trainable(plain, rank, dropout=0.0)
        frozen = config.num_hidden_layers - trained_layers
        for name, parameter in self.encoder.model.named_parameters():
            if any(f".layer.{n}." in f".{name}" for n in range(frozen)):
                parameter.requires_grad_(False)
        # Dropout in the encoder's attention costs as much as the layers themselves on a processor.
        self.encoder.model.eval()
        self.shape = DecoderConfig(
            config.hidden_size, layers, config.num_attention_heads, config.intermediate_size
        )
        generated = generated_pieces(plain, targets)
        self.pieces = ExtendedVocabulary.of_wordpiece(plain.tokenizer, generated)
        # Whoever trains it turns dropout on, and off again: what was restored and not trained must not drop.
        self.decoder = PointerDecoder(
            self.shape, pointer_decoder.embeddings_of(plain.model), generated
        ).eval()
        last = config.num_hidden_layers
        pointer_decoder.initialise_from_encoder(
            self.decoder, plain.model, [max(0, last - layers + i) for i in range(layers)]
        )

    def read(self, texts: Sequence[str]) -> Read:
        return self._read(self.encoder.model, texts)

    def _read(self, model: Any, texts: Sequence[str]) -> Read:
        encoder = Encoder(model, self.encoder.tokenizer, self.encoder.max_pieces)
        sources = source_pieces(encoder, texts)
        hidden = encoder.forward(sources)
        lengths = torch.tensor([len(s) + 2 for s in sources]).unsqueeze(1)
        return Read(hidden, torch.arange(hidden.shape[1]).unsqueeze(0) < lengths, sources)

    def cross_entropy(self, read: Read, summaries: Sequence[str], smoothing: float) -> Tensor:
        limit = self.shape.longest - 2
        texts = [s[:limit] for s in source_pieces(self.encoder, summaries)]
        steps = max(len(t) for t in texts) + 1
        said = torch.full((len(texts), steps), self.pieces.end)
        targets = torch.full((len(texts), steps), -1)
        for row, (text, source) in enumerate(zip(texts, read.pieces, strict=True)):
            said[row, : len(text) + 1] = torch.tensor([self.pieces.begin, *text])
            whole = [self.pieces.begin, *source, self.pieces.end]
            targets[row, : len(text) + 1] = torch.tensor(self.pieces.targets(text, whole))
        source = source_of(self.encoder, self.pieces, read.pieces, read.states)
        found = self.decoder(source, said)
        return pointer_decoder.loss(found, targets, len(self.pieces), smoothing)

    def key_encoder(self) -> KeyEncoder:
        return KeyEncoder(copy.deepcopy(self.encoder.model), self._read)

    def encoder_state(self) -> dict[str, Tensor]:
        return {n: p for n, p in self.encoder.model.named_parameters() if p.requires_grad}

    def parts(self) -> list[nn.Module]:
        return [self.encoder.model, self.decoder]

    def writer(self, search: Search) -> Writer:
        return PointerWriter(self.encoder, self.decoder, self.pieces, search)

    def files(self) -> dict[str, dict[str, Tensor]]:
        stored = {n: t.detach().half().contiguous() for n, t in self.decoder.state_dict().items()}
        stored["generated"] = torch.tensor(self.pieces.generated, dtype=torch.int32)
        return adapter.files(self.encoder.model) | {DECODER: stored}

    def configuration(self) -> dict[str, Any]:
        return {"decoder": asdict(self.shape)}


def generated_pieces(encoder: Encoder, targets: Iterable[str], least: int = 3) -> list[int]:
    """The end, then the pieces that come at least so often in the targets, by number."""
    counts = Counter(p for pieces in source_pieces(encoder, list(targets)) for p in pieces)
    end, unknown = encoder.tokenizer.sep_token_id, encoder.tokenizer.unk_token_id
    return [end, *sorted(p for p, n in counts.items() if n >= least and p not in (end, unknown))]


class HubNetwork:
    """Any encoder-decoder of `transformers`: BART, T5, PEGASUS."""

    name = "hub"

    def __init__(self, base: str, *, max_pieces: int) -> None:
        self.base = base
        self.model, self.tokenizer = load_hub(base)
        self.max_pieces = max_pieces

    def read(self, texts: Sequence[str]) -> Read:
        return self._read(self.model.get_encoder(), texts)

    def _read(self, encoder: Any, texts: Sequence[str]) -> Read:
        found = self._tokens(texts)
        states = encoder(**found).last_hidden_state
        return Read(states, found["attention_mask"].bool(), found["attention_mask"])

    def _tokens(self, texts: Sequence[str]) -> dict[str, Tensor]:
        found = hub_source(self.tokenizer, texts, self.max_pieces)
        return {name: found[name].to(self.model.device) for name in ("input_ids", "attention_mask")}

    def cross_entropy(self, read: Read, summaries: Sequence[str], smoothing: float) -> Tensor:
        wanted = self._tokens(summaries)
        labels = wanted["input_ids"].masked_fill(wanted["attention_mask"] == 0, -100)
        logits = self.model(encoder_outputs=(read.states,), attention_mask=read.pieces, labels=labels).logits
        # torch spreads the mass over all words, the right one among them; Eq. 3 over the others.
        words = logits.shape[-1]
        return nn.functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), label_smoothing=smoothing * words / (words - 1)
        )

    def key_encoder(self) -> KeyEncoder:
        return KeyEncoder(copy.deepcopy(self.model.get_encoder()), self._read)

    def encoder_state(self) -> dict[str, Tensor]:
        return {n: p for n, p in self.model.get_encoder().named_parameters() if p.requires_grad}

    def parts(self) -> list[nn.Module]:
        return [self.model]

    def writer(self, search: Search) -> Writer:
        return HubWriter(self.model, self.tokenizer, search, self.max_pieces)

    def files(self) -> dict[str, dict[str, Tensor]]:
        # Tied weights are one parameter under one name.
        changed = {n: p.detach().half().contiguous() for n, p in self.model.named_parameters()}
        return {CHANGED: changed}

    def configuration(self) -> dict[str, Any]:
        return {}
