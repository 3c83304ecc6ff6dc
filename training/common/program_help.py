"""Runs programs whose help begins with the docstring of their module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from textwrap import dedent

import typer


def run_program(main: Callable[..., None]) -> None:
    """Runs the command line of a program; its description is the docstring of the module of `main`."""
    main.__doc__ = help_text(sys.modules[main.__module__].__doc__ or "")
    typer.run(main)


def help_text(docstring: str) -> str:
    """A docstring with each paragraph in one line, which a terminal wraps. Indented paragraphs, which are
    commands, keep their lines.
    """
    paragraphs = docstring.strip().split("\n\n")
    return "\n\n".join(dedent(p) if p.startswith(" ") else " ".join(p.split()) for p in paragraphs)
