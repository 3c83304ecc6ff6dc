"""From a folder of trained files to a release; canary answers and scores are those of the model as
it is loaded for serving.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from models.drift import REFERENCE
from models.loading import as_json, canary_inputs, model_class
from models.releases.manifest import (
    Canary,
    Manifest,
    Release,
    Score,
    TrainingData,
    manifest_bytes,
    version_of,
)
from models.releases.store import build, describe
from training.common.reference import TextsOf, reference_of


def build_release(
    directory: Path,
    *,
    task: str,
    kind: str,
    base: str,
    base_sha256: str | None,
    configuration: dict[str, Any],
    training_data: Sequence[TrainingData],
    canary: Sequence[Any],
    scores: Callable[[Any], list[Score]] | None,
    root: Path,
    reference: TextsOf | None = None,
    device: torch.device | str = "cpu",
    chosen: Callable[[Any], dict[str, Any]] | None = None,
    model_kind: Any = None,
) -> Release:
    """Loads the files as a release is loaded, in 32 bits on `device`, records the canary answers, evaluates,
    where `scores` is not None, and builds the release under `root`. The texts of `reference` are those that
    later ones are compared with. `chosen` sets and measures further options of the loaded model, and returns
    their entries of the configuration. `model_kind`: the class of a model that no stage serves.
    """
    stated = {"task": task, "kind": kind, "base": base, "base_sha256": base_sha256}
    draft = _draft(directory, stated | {"configuration": configuration}, training_data, canary)
    drafted = Release(directory, draft, version_of(manifest_bytes(draft)))
    model = (model_kind or model_class(task)).load(drafted, device=str(device))
    if chosen is not None:
        draft = draft.model_copy(update={"configuration": configuration | chosen(model)})
    if reference is not None:
        made = reference_of(task, model, reference.made_from, reference.texts)
        (directory / REFERENCE).write_text(made.model_dump_json() + "\n", encoding="utf-8")
        draft = draft.model_copy(update={"files": describe(directory)})
    inputs = canary_inputs(model, draft.canary.inputs)
    answers = Canary(inputs=draft.canary.inputs, outputs=as_json(model.predict(inputs)))
    measured = scores(model) if scores else []
    return build(directory, draft.model_copy(update={"canary": answers, "scores": measured}), root)


def _draft(
    directory: Path, stated: dict[str, Any], training_data: Sequence[TrainingData], canary: Sequence[Any]
) -> Manifest:
    """The manifest without scores, and without the canary's answers."""
    return Manifest.model_validate(
        {
            **stated,
            "files": {name: file.model_dump() for name, file in describe(directory).items()},
            "scores": [],
            "training_data": [source.model_dump() for source in training_data],
            "code_commit": code_commit(),
            "canary": {"inputs": as_json(list(canary)), "outputs": []},
        }
    )


def code_commit() -> str:
    """The commit of the code, with `+` when files differ from it; `unknown` outside a checkout."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return described.stdout.strip()
