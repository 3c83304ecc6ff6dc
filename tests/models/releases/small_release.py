"""The files and the manifest of a small release, and changes to a manifest on disk."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from models.releases.manifest import Manifest
from models.releases.store import describe

WEIGHTS = (2).to_bytes(8, "little") + b"{}" + b"\x00\x01\x02" * 50
CONTENTS = {"weights.safetensors": WEIGHTS, "drugs.tsv": b"name\tgeneric\n", "notes.json": b"{}"}


def manifest_of(source: Path, **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "task": "ner",
        "kind": "a test",
        "base": "mini",
        "base_sha256": None,
        "files": {name: file.model_dump() for name, file in describe(source).items()},
        "configuration": {"max_pieces": 128},
        "scores": [],
        "training_data": [],
        "code_commit": "0123456789ab",
        "canary": {"inputs": ["a"], "outputs": [[]]},
    }
    return Manifest.model_validate(fields | changes)


def stored(path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((path / "manifest.json").read_bytes())
    return fields


def rewrite(path: Path, **changes: Any) -> None:
    (path / "manifest.json").write_text(json.dumps(stored(path) | changes), encoding="utf-8")


def declare(path: Path, name: str, content: bytes = b"") -> None:
    """Declares a file with its true size and digest, whatever its name."""
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    rewrite(path, files=stored(path)["files"] | {name: entry})
