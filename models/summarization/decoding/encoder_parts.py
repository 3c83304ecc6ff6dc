"""What a pointer decoder takes over from its encoder, of whatever family that is: embeddings and layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from models.encoder.split.layers import Layers
from models.summarization.decoding.pointer_decoder import PointerDecoder

#: Positions of a decoder over an encoder that has none of its own.
POSITIONS = 512


class Layout(NamedTuple):
    """The names of the parts of an encoder layer that has its norms after attention and dense layers."""

    attention: tuple[str, str, str, str]
    """query, key, value, output"""
    attention_norm: str
    inner: str
    outer: str
    norm: str


LAYOUTS = (
    Layout(  # BERT, RoBERTa, ELECTRA
        ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
        "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
    ),
    Layout(  # DeBERTa v2 and v3
        ("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj",
         "attention.output.dense"),
        "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
    ),
    Layout(  # MPNet
        ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"),
        "attention.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
    ),
    Layout(  # DistilBERT
        ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
        "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm",
    ),
    Layout(  # ALBERT
        ("albert_layers.0.attention.query", "albert_layers.0.attention.key",
         "albert_layers.0.attention.value", "albert_layers.0.attention.dense"),
        "albert_layers.0.attention.LayerNorm", "albert_layers.0.ffn", "albert_layers.0.ffn_output",
        "albert_layers.0.full_layer_layer_norm",
    ),
)  # fmt: skip


def inner_size(config: Any) -> int:
    """The dimension between the two dense layers of an encoder with this configuration."""
    found = getattr(config, "intermediate_size", None) or getattr(config, "hidden_dim", None)
    return int(found or 4 * config.hidden_size)


def embeddings_of(model: Any) -> dict[str, Tensor]:
    """The embeddings of an encoder as `PointerDecoder` expects them.

    Where they are narrower than the layers, their projection to the layers' dimension; where the encoder has
    no absolute positions, sines and cosines as long as its words.
    """
    own, words = model.embeddings, model.get_input_embeddings().weight
    dimension = int(model.config.hidden_size)
    if words.shape[1] != dimension:
        words = _projection(model, words.shape[1], dimension)(words)
        return {"words": words, "positions": _waves(words), "norm": _unit_norm(words)}
    norm = getattr(own, "LayerNorm", None) or getattr(own, "norm", None)
    positions = getattr(own, "position_embeddings", None)
    if positions is None:
        rows = _waves(words)
    else:
        # RoBERTa and MPNet count positions from the number of the padding piece plus one.
        rows = positions.weight[0 if positions.padding_idx is None else positions.padding_idx + 1 :]
    kinds = getattr(own, "token_type_embeddings", None)
    return {
        "words": words,
        "positions": rows if kinds is None else rows + kinds.weight[0],
        "norm": _unit_norm(words) if norm is None else torch.stack([norm.weight, _bias(norm)]),
    }


def _projection(model: Any, narrow: int, wide: int) -> nn.Linear:
    found = (m for m in model.modules() if isinstance(m, nn.Linear))
    return next(m for m in found if (m.in_features, m.out_features) == (narrow, wide))


def _waves(words: Tensor) -> Tensor:
    """(POSITIONS, dimension): the positions of Vaswani et al. (2017), of the words' mean square."""
    half = words.shape[1] // 2
    angles = torch.arange(POSITIONS).unsqueeze(1) * 10000 ** (-torch.arange(half) / half)
    waves = torch.cat([angles.sin(), angles.cos(), torch.zeros(POSITIONS, words.shape[1] - 2 * half)], 1)
    return (waves.to(words.device) * words.detach().float().square().mean().sqrt()).to(words.dtype)


def _unit_norm(words: Tensor) -> Tensor:
    return torch.stack([torch.ones_like(words[0]), torch.zeros_like(words[0])])


def _bias(norm: Any) -> Tensor:
    return torch.zeros_like(norm.weight) if norm.bias is None else norm.bias


def initialise_from_encoder(decoder: PointerDecoder, model: Any, chosen: Sequence[int]) -> bool:
    """Copies the weights of the chosen layers of an encoder into the decoder's layers; self-attention and
    cross-attention begin with the same weights. Layers of another make (ModernBERT) are not copied, and the
    answer is False. Raises ValueError where the shapes differ.
    """
    layers = Layers(model)
    modules = [layers.modules[0 if layers.shared else number] for number in chosen]
    layout = next((one for one in LAYOUTS if _has(modules[0], one)), None) if modules else None
    if layout is None:
        return False
    for layer, theirs in zip(decoder.layers, modules, strict=True):
        _copy(layer, theirs, layout)
    return True


def _has(layer: nn.Module, layout: Layout) -> bool:
    names = {name for name, _ in layer.named_modules()}
    return names.issuperset([*layout.attention, *layout[1:]])


def _copy(layer: Any, theirs: nn.Module, layout: Layout) -> None:
    inner = theirs.get_submodule(layout.inner)
    if inner.weight.shape != layer.inner.weight.shape:
        raise ValueError("the encoder's layers have another shape than the decoder's")
    parts = [(layer.inner, layout.inner), (layer.outer, layout.outer)]
    for mine in (layer.own, layer.cross):
        parts += zip((mine.query, mine.key, mine.value, mine.output), layout.attention, strict=True)
    parts += zip(layer.norms, [layout.attention_norm] * 2 + [layout.norm], strict=True)
    for mine, name in parts:
        mine.load_state_dict(theirs.get_submodule(name).state_dict())
