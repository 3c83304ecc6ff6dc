"""Writes the files that commands are asked for."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import typer


def check_writable(**options: Path | None) -> None:
    """Before a long command: raises typer.BadParameter for a file that could not be written at its end."""
    for name, path in options.items():
        if path is not None and (reason := _hindrance(path)):
            raise typer.BadParameter(f"{path}: {reason}", param_hint=f"--{name}")


def _hindrance(path: Path) -> str:
    """Why a file cannot be written; empty where it can."""
    if path.is_dir():
        return "is a folder"
    folder = path.resolve().parent
    if path.exists() and os.access(path, os.W_OK):
        return ""
    if not folder.is_dir():
        return f"there is no folder {folder}"
    return "" if os.access(folder, os.W_OK) else "this user may not write there"


def write_json(path: Path, content: Any) -> None:
    """Values as JSON, see `write_whole`."""
    write_whole(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file at once: whoever reads it meanwhile, and a crash, find the old content or the new one.

    A link, what is no file (such as /dev/stdout), and a file that cannot be replaced are written to.
    """
    from models.releases.store import sync

    if path.is_symlink() or (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):
        path.write_bytes(content)
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        if path.exists():
            shutil.copymode(path, temporary)
        sync(temporary)
        temporary.replace(path)
    except OSError as error:
        if error.errno != errno.EBUSY:  # mounted into a container as a file
            raise
        path.write_bytes(content)
    finally:
        temporary.unlink(missing_ok=True)
