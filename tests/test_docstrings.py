"""A docstring begins with what it is about, not with a pronoun for something said elsewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(
    part
    for name in ("benchmarks", "docs", "models", "streams", "training")
    for part in (ROOT / name).iterdir()
    if (part / "__init__.py").is_file() or part.suffix == ".py"
)

#: Pronouns, also those that look like an adjective where no noun follows ("The same among words"), and "As"
#: before the name of another function.
PRONOUN = re.compile(
    r"(?:Those|These|Ones|One of|That of|It|Its|They|Such|All that|Others)\b"
    r"|As (?!(?:an?|the)\b)"
    r"|(?:The (?:same|others?|latter|former|first|last|second)|This|One|Another|Both|All)"
    r"(?=[.,;:]| (?:among|as|at|but|by|for|from|in|is|of|on|to|where|which|with|without)\b)"
)


def docstrings(path: Path) -> list[tuple[str, str]]:
    """The place and text of each docstring of a module."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, kinds)]
    found = [(f"{path.name}:{getattr(n, 'lineno', 1)}", ast.get_docstring(n)) for n in nodes]
    return [(place, text) for place, text in found if text]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_docstring_begins_with_a_pronoun(package: Path) -> None:
    modules = sorted(package.rglob("*.py")) if package.is_dir() else [package]
    found = [(place, text) for module in modules for place, text in docstrings(module)]
    assert [(place, text.splitlines()[0]) for place, text in found if PRONOUN.match(text)] == []
