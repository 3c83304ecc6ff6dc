"""A release: an immutable directory whose manifest names every file, how it was made and how well it does."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

MANIFEST = "manifest.json"
#: Formats that cannot run code when they are read.
ALLOWED_SUFFIXES = frozenset({".safetensors", ".json", ".tsv"})
MAX_MANIFEST_BYTES = 4 << 20
MAX_FILE_BYTES = 2 << 30

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class ReleaseError(Exception):
    """A release that must not be loaded; the message is always one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class StoreError(ReleaseError):
    """The place where a release should be does not answer or does not have it; another time it may."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class File(_Strict):
    sha256: Sha256
    size: Annotated[int, Field(ge=0, le=MAX_FILE_BYTES)]


class Score(_Strict):
    """A figure, what exactly was counted, on which records, and what a trivial method scores there."""

    name: str
    value: float
    definition: str
    data: str
    records: int
    baseline: float | None
    baseline_definition: str


class TrainingData(_Strict):
    name: str
    licence: str


class Canary(_Strict):
    """Inputs and what this release answered when it was made; a load that answers otherwise is refused."""

    inputs: list[Any]
    outputs: list[Any]
    tolerance: Annotated[float, Field(ge=0, le=0.2, allow_inf_nan=False)] = 0.02


class Manifest(_Strict):
    format: Literal[1] = 1
    task: Literal["ner", "acronym", "relation", "normalization", "summarization", "idiom"]
    kind: str
    base: str
    base_sha256: Sha256 | None
    files: dict[str, File]
    configuration: dict[str, Any]
    scores: list[Score]
    training_data: list[TrainingData]
    code_commit: str
    canary: Canary


class Release:
    """A verified release directory."""

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
    """The manifest as it is stored: sorted keys, so that equal manifests have equal versions."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(manifest.model_dump(), option=options)


def version_of(stored_manifest: bytes) -> str:
    """First 12 hexadecimal digits of the manifest's sha256; the manifest holds the digest of everything
    else.
    """
    return hashlib.sha256(stored_manifest).hexdigest()[:12]


def parse_manifest(stored: bytes, where: str) -> Manifest:
    try:
        return Manifest.model_validate_json(stored)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise ReleaseError(f"{where}: manifest.json: {place}: {first['msg']}") from None
