"""From a folder of trained files to a published release; canary answers and scores are those of the model as
it is loaded for serving.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from models.drift import REFERENCE
from models.releases.loading import as_json, canary_inputs, model_class
from models.releases.manifest import (
    Canary,
    Manifest,
    Release,
    Score,
    TrainingData,
    manifest_bytes,
    version_of,
)
from models.releases.store import describe, publish
from training.common.reference import TextsOf, reference_of


def publish_release(
    directory: Path,
    *,
    task: str,
    kind: str,
    base: str,
    base_sha256: str | None,
    configuration: dict[str, Any],
    training_data: Sequence[TrainingData],
    canary: Sequence[Any],
    scores: Callable[[Any], list[Score]],
    root: Path,
    reference: TextsOf | None = None,
    device: torch.device | str = "cpu",
) -> Release:
    """Loads the files as a release is loaded, in 32 bits on `device`, records the canary answers, evaluates,
    and publishes under `root`. The texts of `reference` are those that later ones are compared with.
    """
    stated = {"task": task, "kind": kind, "base": base, "base_sha256": base_sha256}
    draft = _draft(directory, stated | {"configuration": configuration}, training_data, canary)
    drafted = Release(directory, draft, version_of(manifest_bytes(draft)))
    model = model_class(task).load(drafted, device=str(device))
    if reference is not None:
        made = reference_of(task, model, reference.made_from, reference.texts)
        (directory / REFERENCE).write_text(made.model_dump_json() + "\n", encoding="utf-8")
        draft = draft.model_copy(update={"files": describe(directory)})
    inputs = canary_inputs(model, draft.canary.inputs)
    answers = Canary(inputs=draft.canary.inputs, outputs=as_json(model.predict(inputs)))
    return publish(directory, draft.model_copy(update={"canary": answers, "scores": scores(model)}), root)


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


OFFERED = Annotated[
    bool,
    typer.Option("--publish", help="announce the release on PV_BROKER too, if it passes the gate"),
]


def offer(release: Release, data: Path | None) -> None:
    """Runs `pvstream publish` on a release, with its gate, in a process of its own (training does not import
    Kafka clients). Raises typer.Exit with the command's exit code where it fails.
    """
    command = [sys.executable, "-m", "streams", "publish", str(release.path)]
    done = subprocess.run([*command, *(["--data", str(data)] if data else [])], check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)


def finish(release: Release, data: Path | None, offered: bool) -> None:
    """The end of every training program: prints the scores and, where asked for, offers the release."""
    print_scores(Console(), release)
    if offered:
        offer(release, data)


def print_scores(console: Console, release: Release) -> None:
    """Every score of a release beside its baseline and its definition."""
    for row in release.manifest.scores:
        console.print(
            f"{row.data} (n {row.records}): [bold]{row.name} {row.value}[/], baseline {row.baseline} "
            f"({row.baseline_definition}) - {row.definition}",
            highlight=False,
        )
    console.print(f"release {release.version} in {release.path}", highlight=False)


def code_commit() -> str:
    """The commit of the code, with `+` when files differ from it; `unknown` outside a checkout."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()
