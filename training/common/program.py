"""Options that the commands of training and of its benchmarks share, and what they check at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import torch
import typer

from models.encoder.capabilities import Need, refusal


def checked_folder(folder: Path) -> Path:
    """The folder; raises typer.BadParameter, before hours of training, if it cannot be written."""
    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise typer.BadParameter(f"{place} is no folder that this user may write to", param_hint="--output")
    return folder


DeviceName = Literal["auto", "cpu", "cuda"]
# Options that all programs have.
Output = Annotated[
    Path,
    typer.Option(
        help="root folder of the releases; the new one is written below it", callback=checked_folder
    ),
]
Run = Annotated[
    Path | None, typer.Option(help="folder of checkpoints; a run that was stopped resumes from it")
]
Device = Annotated[DeviceName, typer.Option(help="device; auto: the GPU if there is one")]
#: Not where the bundled releases are: with a second one of a task there, no command starts.
RELEASES = Path("runs")


def check_base(base: str, need: Need) -> None:
    """Raises typer.BadParameter, in one line, where a program cannot use a base model. Called before anything
    is read or trained.
    """
    if reason := refusal(base, need):
        raise typer.BadParameter(reason)


def device_of(name: DeviceName) -> torch.device:
    """The device of that name; `auto` is the GPU where there is one. Raises typer.BadParameter where a GPU is
    asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise typer.BadParameter("--device cuda: no GPU is available to torch")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
