"""Programs whose options are the fields of frozen dataclasses: one place for a setting, its default and its
help.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import torch
import typer

from models.encoder.capabilities import Need, refusal


def checked_folder(folder: Path) -> Path:
    """The folder; before hours of training raises typer.BadParameter where it could not be written at their
    end.
    """
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


def program(function: Callable[..., None]) -> Callable[..., None]:
    """The function with every parameter that is annotated with a dataclass replaced by the fields of that
    dataclass, each with its own annotation and default; all parameters by keyword. `typer.run` takes it.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _parameters(hints[name])
        else:
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=keyword, annotation=hints[name]))

    def main(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind) if f.name in given})
        function(**given)

    main.__name__, main.__doc__, main.__module__ = "main", function.__doc__, function.__module__
    main.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    main.__annotations__ = {p.name: p.annotation for p in parameters}
    return main


def _parameters(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, default=_default(f), annotation=hints[f.name]
        )
        for f in fields(kind)
    ]


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is MISSING else field.default_factory()


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
