"""Reads a packed BERT or MPNet from the files of a base model, with the changes of a release merged into its
layers.

The embeddings are mapped from the file of the base, once for all releases of the process, which also share
the layers that they do not change; of a layer only the weights that are used are held.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor

from models.encoder.base_files import resolve_base
from models.encoder.merging import changed_parameters, check_changes, with_changes
from models.encoder.number_formats import blocks
from models.encoder.packed.bert import BertConfig, Embeddings, Layer, Linear, Norm, PackedBert
from models.encoder.weights import checked_weights
from models.once import once
from models.releases.tensors import read_tensors

#: What a model must be, besides one of FAMILIES, to be computed here.
_CONFIG = {"hidden_act": "gelu", "position_embedding_type": "absolute"}
_EMBEDDINGS = "embeddings."
_OUTPUTS = ("intermediate.dense", "output.dense", "output.LayerNorm")


class Family(NamedTuple):
    """The names that a family of models gives to its parameters."""

    layer: tuple[str, ...]
    """query, key, value, their output and its norm, the inner and outer layer and their norm"""
    first_position: int = 0
    types: str | None = None
    distances: str | None = None


FAMILIES = {
    "bert": Family(
        (*(f"attention.self.{n}" for n in ("query", "key", "value")), "attention.output.dense",
         "attention.output.LayerNorm", *_OUTPUTS),
        types="token_type_embeddings.weight",
    ),
    "mpnet": Family(
        (*(f"attention.attn.{n}" for n in "qkvo"), "attention.LayerNorm", *_OUTPUTS),
        first_position=2,  # those before it are of padding
        distances="encoder.relative_attention_bias.weight",
    ),
}  # fmt: skip


def load_packed(
    base: str,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    *,
    adapter: Path | None = None,
    weights: Path | None = None,
) -> PackedBert | None:
    """The packed model of a base, with the files of a release as in `weights.load_model`; None where the base
    is of no family of FAMILIES in a folder with one file of weights.

    Calls without either file share one model. Raises ReleaseError or ValueError as `weights.load_model`.
    """
    folder = Path(resolve_base(base))
    config = _config(folder)
    if config is None:
        return None
    if adapter is None and weights is None:
        return _shared(folder, config, device, dtype)
    tensors = _mapped(folder)
    own = {} if weights is None else checked_weights(tensors, read_tensors(weights))
    changes = {} if adapter is None else read_tensors(adapter)
    check_changes({name: tensor.shape for name, tensor in tensors.items()}, changes)
    parameters, changed = _Parameters(tensors | own, changes), own.keys() | changed_parameters(changes)

    def is_shared(*parts: str) -> bool:
        return not any(name.startswith(parts) for name in changed)

    embeddings = (
        _shared_embeddings(folder, config, device)
        if is_shared(_EMBEDDINGS, FAMILIES[config.model_type].distances or _EMBEDDINGS)
        else _embeddings(parameters, config, device)
    )
    layers = [
        _shared_layer(folder, config, i, device, dtype)
        if is_shared(f"encoder.layer.{i}.")
        else _layer(parameters, config, i, device, dtype)
        for i in range(config.num_hidden_layers)
    ]
    return PackedBert(config, embeddings, layers)


class _Parameters:
    """The parameters in 32 bits, each with its changes merged when it is asked for."""

    def __init__(self, tensors: Mapping[str, Tensor], changes: Mapping[str, Tensor]) -> None:
        self.tensors, self.changes = tensors, changes

    def __getitem__(self, name: str) -> Tensor:
        return with_changes(name, self.tensors[name], self.changes)


@once
def _shared(folder: Path, config: BertConfig, device: str, dtype: torch.dtype) -> PackedBert:
    layers = [_shared_layer(folder, config, i, device, dtype) for i in range(config.num_hidden_layers)]
    return PackedBert(config, _shared_embeddings(folder, config, device), layers)


@once
def _shared_layer(folder: Path, config: BertConfig, number: int, device: str, dtype: torch.dtype) -> Layer:
    return _layer(_Parameters(_mapped(folder), {}), config, number, device, dtype)


@once
def _shared_embeddings(folder: Path, config: BertConfig, device: str) -> Embeddings:
    return _embeddings(_Parameters(_mapped(folder), {}), config, device)


@once
def _config(folder: Path) -> BertConfig | None:
    """None where the folder holds another model than this module computes."""
    try:
        settings: dict[str, Any] = json.loads((folder / "config.json").read_bytes())
        names = _mapped(folder).keys()
    except FileNotFoundError:
        return None
    settings.setdefault("position_embedding_type", "absolute")
    family = FAMILIES.get(settings.get("model_type", ""))
    if family is None:
        return None
    needed = {
        f"encoder.layer.{i}.{part}.weight"
        for i in range(settings.get("num_hidden_layers", 0))
        for part in family.layer
    }
    if (
        any(settings.get(k) != v for k, v in _CONFIG.items())
        or settings.get("is_decoder")
        or not needed <= names
    ):
        return None
    return BertConfig(**{name: settings[name] for name in BertConfig.__dataclass_fields__})


def _mapped(folder: Path) -> dict[str, Tensor]:
    """The tensors of a base as maps of its file, of which a page is read when it is needed."""
    stored = load_file(folder / "model.safetensors")
    return {n.removeprefix("bert."): t for n, t in stored.items() if t.is_floating_point()}


def _embeddings(parameters: _Parameters, config: BertConfig, device: str) -> Embeddings:
    def stored(name: str) -> Tensor:
        return parameters[_EMBEDDINGS + name].to(device)

    family = FAMILIES[config.model_type]
    positions = stored("position_embeddings.weight")[family.first_position :]
    if family.types is not None:
        positions = positions + stored(family.types)[0]
    norm = Norm(stored("LayerNorm.weight"), stored("LayerNorm.bias"))
    distances = parameters[family.distances].to(device) if family.distances else None
    return Embeddings(stored("word_embeddings.weight"), positions, norm, distances)


def _layer(
    parameters: _Parameters, config: BertConfig, number: int, device: str, dtype: torch.dtype
) -> Layer:
    names = FAMILIES[config.model_type].layer
    in_blocks = dtype == torch.bfloat16 and torch.device(device).type == "cpu"

    def stored(*parts: str, dtype: torch.dtype = torch.float32) -> list[Tensor]:
        """Weight and bias of the parts of the layer, one below the other."""
        paths = [f"encoder.layer.{number}.{part}" for part in parts]
        # Concatenated also where there is one, because it would stay a map of the file.
        return [
            torch.cat([parameters[f"{path}.{kind}"] for path in paths]).to(device, dtype)
            for kind in ("weight", "bias")
        ]

    def linear(*parts: str) -> Linear:
        weight, bias = stored(*parts, dtype=dtype)
        return Linear(tuple(b.contiguous() for b in blocks(weight)) if in_blocks else (weight,), bias)

    return Layer(
        query_key_value=linear(*names[:3]),
        attended=linear(names[3]),
        attended_norm=Norm(*stored(names[4])),
        inner=linear(names[5]),
        outer=linear(names[6]),
        outer_norm=Norm(*stored(names[7])),
    )
