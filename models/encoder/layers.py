"""The transformer layers of an encoder, of any family that keeps them in a list."""

from __future__ import annotations

from typing import Any

from torch import nn

from models.encoder.model import Encoder
from models.encoder.packed.bert import PackedBert


def layers_of(model: Any) -> nn.ModuleList:
    """The layers of a model of transformers, lowest first. Raises ValueError for a model without such a list;
    the layers of an ALBERT are one and the same.
    """
    number = int(model.config.num_hidden_layers)
    lists = (m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == number)
    layers = next(lists, None)
    if layers is None:
        raise ValueError("the encoder does not keep its layers in a list")
    return layers


def over(lower: Encoder, upper: Encoder, below: int) -> Encoder:
    """An encoder with the embeddings and the first `below` layers of `lower`, and the layers of `upper` above
    them. Both are of one base, and weights are shared, not copied; a model of transformers in `upper` is
    changed in place. Raises ValueError unless at least one layer is below and one above.
    """
    packed = isinstance(upper.model, PackedBert)
    layers = upper.model.layers if packed else layers_of(upper.model)
    if not 1 <= below < len(layers):
        raise ValueError(f"cannot put layers over the first {below} of {len(layers)}")
    if packed:
        model = lower.model.with_layers([*lower.model.layers[:below], *layers[below:]])
        return Encoder(model, lower.tokenizer, lower.max_pieces)
    upper.model.set_input_embeddings(lower.model.get_input_embeddings())
    for i, layer in enumerate(layers_of(lower.model)[:below]):
        layers[i] = layer
    return Encoder(upper.model, lower.tokenizer, lower.max_pieces)
