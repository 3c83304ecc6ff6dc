"""Runs programs whose help begins with the docstring of their module, and whose errors are one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from textwrap import dedent

import typer

from training.common import UserError


def run_program(main: Callable[..., None]) -> None:
    """Runs a program as `reported`; its description is the docstring of the module of `main`."""
    main.__doc__ = help_text(sys.modules[main.__module__].__doc__ or "")
    reported(lambda: typer.run(main))


def reported(run: Callable[[], object]) -> None:
    """Calls `run`; what the user can act on, as a missing file, is one line, with exit code 1."""
    try:
        run()
    except Exception as error:
        if not isinstance(error, _reported_errors()):
            raise
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)


def _reported_errors() -> tuple[type[Exception], ...]:
    """Imported only when a program has failed: they live in modules that take seconds to import."""
    from safetensors import SafetensorError  # noqa: PLC0415  also of a disk that is full

    from models.releases.manifest import ReleaseError  # noqa: PLC0415
    from models.terminology import TerminologyError  # noqa: PLC0415
    from training.common.checkpoint import CheckpointError  # noqa: PLC0415

    return UserError, ReleaseError, TerminologyError, CheckpointError, SafetensorError, OSError


def help_text(docstring: str) -> str:
    """A docstring with each paragraph in one line; indented ones, commands, keep their lines."""
    paragraphs = docstring.strip().split("\n\n")
    return "\n\n".join(dedent(p) if p.startswith(" ") else " ".join(p.split()) for p in paragraphs)
