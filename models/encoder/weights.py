"""The weights of a base model, as they are, replaced by trained ones, or with an adapter merged into them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.base_files import base_digest, has_safetensors, resolve_base
from models.encoder.merging import changed_parameters, check_changes, with_changes
from models.encoder.number_formats import block_linear_layers
from models.once import once
from models.releases.manifest import ReleaseError
from models.releases.tensors import read_tensors

#: What a release adds to its base's weights: low-rank matrices or 8-bit deltas (`merge_adapter`).
ADAPTER = "adapter.safetensors"
#: All layers of a trained encoder, for a release without an adapter.
WEIGHTS = "encoder.safetensors"


def check_base(base: str, sha256: str | None, where: str) -> None:
    """Raises ReleaseError when the installed base's weights have another digest than `sha256`, if given."""
    if sha256 is not None and base_digest(base) != sha256:
        raise ReleaseError(f"{where}: the base {base} has another sha256 than declared")


def load_model(
    base: str, device: str, dtype: torch.dtype, *, adapter: Path | None = None, weights: Path | None = None
) -> Any:
    """The Hugging Face model of a base, with the trained weights in the file `weights` in place of its own,
    and the adapter in the file `adapter` (low-rank or 8-bit) merged in 32 bits before rounding to `dtype`.

    Calls without either file share one model in the process, which must not be changed. Raises ReleaseError
    or ValueError when a file is malformed or does not fit the base.
    """
    if adapter is None and weights is None:
        return _shared_model(base, device, dtype)
    model = _base_model(base)
    if weights is not None:
        replace_weights(model, read_tensors(weights))
    if adapter is not None:
        merge_adapter(model, read_tensors(adapter))
    return _converted(model, device, dtype)


def load_tokenizer(base: str) -> Any:
    """The Hugging Face tokenizer of a base."""
    from tokenizers.pre_tokenizers import ByteLevel  # noqa: PLC0415
    from transformers import AutoTokenizer  # noqa: PLC0415

    # Byte-level tokenizers encode a word at the start of a text differently from one that follows a space:
    # every word is encoded as if it followed one.
    tokenizer = AutoTokenizer.from_pretrained(resolve_base(base), add_prefix_space=True)
    if tokenizer.is_fast and isinstance(tokenizer.backend_tokenizer.pre_tokenizer, ByteLevel):
        # The class of some of them does not know the option.
        tokenizer.backend_tokenizer.pre_tokenizer.add_prefix_space = True
    return tokenizer


def replace_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Replaces the model's weights by trained ones; raises ValueError as `checked_weights`."""
    model.load_state_dict(checked_weights(model.state_dict(), tensors), strict=False)


def checked_weights(own: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Trained weights in the number formats of a model's `own`; embeddings and pooler may be missing.

    Raises ValueError when names or shapes are not those of the model.
    """
    missing = {n for n in own.keys() - tensors.keys() if "embeddings." not in n and "pooler" not in n}
    if missing or tensors.keys() - own.keys():
        raise ValueError(f"{WEIGHTS} does not hold the weights of this base")
    if any(own[name].shape != tensor.shape for name, tensor in tensors.items()):
        raise ValueError(f"{WEIGHTS} holds weights of other shapes than this base's")
    return {name: tensor.to(own[name].dtype) for name, tensor in tensors.items()}


def merge_adapter(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Adds the changes in `tensors` to the model's parameters, as `with_changes` does; raises ValueError as
    `check_changes`.
    """
    parameters = dict(model.named_parameters())
    check_changes({name: p.shape for name, p in parameters.items()}, tensors)
    for name in changed_parameters(tensors):
        own = parameters[name].data
        own.copy_(with_changes(name, own, {n: t.to(own.device) for n, t in tensors.items()}))


def pretrained(base: str, kind: str) -> Any:
    """The Hugging Face model of a base in 32 bits, by a class of transformers that finds out the family, for
    instance `AutoModel`. Raises OSError where the base has no weights.
    """
    import transformers  # noqa: PLC0415  seconds to import; the command line must not wait for it
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415

    # The library logs each weight that is unused or newly initialised, over many lines.
    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return getattr(transformers, kind).from_pretrained(
        resolve_base(base), dtype=torch.float32, use_safetensors=has_safetensors(base), weights_only=True
    )


def _base_model(base: str) -> Any:
    return pretrained(base, "AutoModel").eval()


@once
def _shared_model(base: str, device: str, dtype: torch.dtype) -> Any:
    return _converted(_base_model(base), device, dtype)


def _converted(model: Any, device: str, dtype: torch.dtype) -> Any:
    model = model.to(device=device, dtype=dtype)
    if dtype == torch.bfloat16 and torch.device(device).type == "cpu":
        block_linear_layers(model)
    return model
