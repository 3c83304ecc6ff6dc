"""Checks of option values, before hours of training; all raise typer.BadParameter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer


def existing_folders(names: str) -> str:
    """Folders with commas between them."""
    for name in filter(None, names.split(",")):
        if not Path(name).is_dir():
            raise typer.BadParameter(f"there is no folder {name}")
    return names


def any_of(*known: str) -> Callable[[str], str]:
    """Makes the check of known names with commas between them."""

    def check(names: str) -> str:
        for name in filter(None, names.split(",")):
            if name not in known:
                raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}")
        return names

    return check
