"""Pretrained weights of an encoder's layers in a file, with the base that they are for and what they were
trained on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from models.encoder.base_files import base_digest
from models.releases.manifest import TrainingData

_BASE, _SPLIT, _SOURCES = "base_sha256", "split", "training_data"


def write_weights(
    path: Path, tensors: Mapping[str, Tensor], base: str, split: str, sources: Sequence[TrainingData]
) -> None:
    """Writes the file, with its folder; after a crash there is the whole file or none. No text of the test
    part of `split` of the ADE corpus is among the sources.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    described = {
        _BASE: base_digest(base) or "",
        _SPLIT: split,
        _SOURCES: json.dumps([source.model_dump() for source in sources]),
    }
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file(dict(tensors), unfinished, metadata=described)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_sources(path: Path, base: str, split: str | None) -> list[TrainingData]:
    """What the weights in the file were trained on. Raises typer.BadParameter where the file is no such one,
    is for another base than `base`, or may know texts of the test part of `split`, if that is given.
    """
    try:
        with safe_open(path, framework="pt") as file:
            described = file.metadata() or {}
        sources = [TrainingData.model_validate(row) for row in json.loads(described[_SOURCES])]
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise typer.BadParameter(f"{path} is no file of training.pretraining") from error
    if described.get(_BASE) != (base_digest(base) or ""):
        raise typer.BadParameter(f"{path} holds weights for another base than {base}")
    if split is not None and described.get(_SPLIT) != split:
        raise typer.BadParameter(f"{path} holds weights for {described.get(_SPLIT)}, not for {split}")
    return sources
