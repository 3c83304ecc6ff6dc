"""A release: an immutable directory with a manifest of its files, its training and its scores."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

MANIFEST = "manifest.json"
#: File formats whose readers run no code from the file.
ALLOWED_SUFFIXES = frozenset({".safetensors", ".json", ".tsv"})
MAX_MANIFEST_BYTES = 4 << 20
MAX_FILE_BYTES = 2 << 30
#: In place of the name of a base model: the release is tables alone.
NO_BASE = "none"

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the declared files of a release may need together."""

    bytes: int = 2 << 30
    files: int = 64


DEFAULT_LIMITS = Limits()


class ReleaseError(Exception):
    """A release that must not be loaded; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class PassingError(ReleaseError):
    """A later attempt may succeed: not the release is at fault but the store, or this process, which lacks
    memory or file handles.
    """


class StoreError(PassingError):
    """The store cannot be reached or does not have the release."""


class _StrictModel(BaseModel):
    """Without conversions, unknown fields or changes."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class File(_StrictModel):
    """Digest and size in bytes of a declared file."""

    sha256: Sha256
    size: Annotated[int, Field(ge=0, le=MAX_FILE_BYTES)]


class Score(_StrictModel):
    """A score of the release with its definition, its data, and the score of a baseline on the same data."""

    name: str
    value: float
    definition: str
    data: str
    records: int
    baseline: float | None
    baseline_definition: str


class TrainingData(_StrictModel):
    """A corpus the release was trained on."""

    name: str
    licence: str


class Canary(_StrictModel):
    """Inputs, and the outputs of the model when the release was made; a release whose loaded model returns
    other outputs is refused.
    """

    inputs: list[Any]
    outputs: list[Any]
    tolerance: Annotated[float, Field(ge=0, le=0.2, allow_inf_nan=False)] = 0.02


class Manifest(_StrictModel):
    """Everything that is known about a release; format 1."""

    format: Literal[1] = 1
    task: Literal["ner", "acronym", "relation", "normalization", "summarization", "idiom", "judge"]
    kind: str
    base: str
    """name of the base model, see models.encoder.weights.resolve_base, or NO_BASE"""
    base_sha256: Sha256 | None
    """of the base model's weights; None where they are not checked"""
    files: dict[str, File]
    configuration: dict[str, Any]
    scores: list[Score]
    training_data: list[TrainingData]
    code_commit: str
    canary: Canary


class Release:
    """A release directory whose every file was verified against its manifest."""

    def __init__(self, path: Path, manifest: Manifest, version: str) -> None:
        self.path = path
        self.manifest = manifest
        self.version = version

    @property
    def task(self) -> str:
        return self.manifest.task

    def file(self, name: str) -> Path:
        """Path of a declared file; raises ReleaseError for any other name."""
        if name not in self.manifest.files:
            raise ReleaseError(f"{self.path.name}: the manifest declares no file {name}")
        return self.path / name


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as it is stored; its keys are sorted, so that equal manifests have equal versions."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(manifest.model_dump(), option=options)


def version_of(stored_manifest: bytes) -> str:
    """The first 12 hexadecimal digits of the sha256 of a manifest, which has those of all files."""
    return hashlib.sha256(stored_manifest).hexdigest()[:12]


def parse_manifest(stored: bytes, where: str) -> Manifest:
    """The manifest in these bytes; raises ReleaseError whose message begins with `where`, also when the
    canary is empty and would pass with any weights.
    """
    try:
        manifest = Manifest.model_validate_json(stored)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise ReleaseError(f"{where}: manifest.json: {place}: {first['msg']}") from None
    if not manifest.canary.inputs or not manifest.canary.outputs:
        raise ReleaseError(f"{where}: {MANIFEST}: the canary is empty")
    return manifest
