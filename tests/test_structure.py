"""Folders and functions stay small enough to find one's way in."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ["benchmarks", "docs", "models", "streams", "tests", "training"]
PACKAGES = ["benchmarks", "models", "streams", "training"]
FEWEST_FILES, MOST_FILES, MOST_LINES = 3, 20, 40
#: Bytes of all releases that the history holds, for ever: whoever commits a release raises this by its size,
#: once, when it is final.
RELEASES_IN_HISTORY = 448_744_267


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the signature to the end; decorators are left out."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_no_folder_holds_more_than_twenty_modules() -> None:
    modules = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    found = Counter(path.parent for path in modules if path.name != "__init__.py")
    assert found.keys() >= {ROOT / "tests", ROOT / "benchmarks"}
    assert {str(folder.relative_to(ROOT)): n for folder, n in found.items() if n > MOST_FILES} == {}


def test_each_package_holds_at_least_three_files_or_packages() -> None:
    packages = [init.parent for folder in PACKAGES for init in (ROOT / folder).rglob("__init__.py")]
    assert len(packages) > len(PACKAGES)
    found = {
        str(folder.relative_to(ROOT)): len([*folder.glob("*.py"), *folder.glob("*/__init__.py")])
        for folder in packages
    }
    assert {folder: n for folder, n in found.items() if n < FEWEST_FILES} == {}


def test_no_file_has_a_name_that_says_nothing_of_its_content() -> None:
    nothing = {"judging", "kept", "opening", "openings", "reading", "redecoded", "renamed"}
    paths = [path for folder in SOURCES if folder != "tests" for path in (ROOT / folder).rglob("*.py")]
    assert [str(path.relative_to(ROOT)) for path in paths if path.stem in nothing] == []


def functions_in(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions and methods; expressions hold none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
        if not isinstance(child, ast.expr):
            yield from functions_in(child)


@pytest.mark.parametrize("folder", SOURCES)
def test_no_function_is_longer_than_forty_lines(folder: str) -> None:
    functions = [
        (path, node)
        for path in (ROOT / folder).rglob("*.py")
        for node in functions_in(ast.parse(path.read_text()))
    ]
    assert functions
    long = [(path, node.name, lines(node)) for path, node in functions if lines(node) > MOST_LINES]
    assert long == []


def test_a_release_is_committed_once() -> None:
    """A release that a later commit replaces stays in everybody's clone."""
    if not (ROOT / ".git").exists():
        pytest.skip("no clone of the repository")
    listed = subprocess.run(
        "git rev-list --objects HEAD -- models/pretrained"
        " | git cat-file --batch-check='%(objecttype) %(objectsize) %(rest)'",
        shell=True,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    rows = (row.split(" ", 2) for row in listed.stdout.splitlines())
    sizes = [
        int(size) for kind, size, path in rows if kind == "blob" and path.startswith("models/pretrained/")
    ]
    assert 0 < sum(sizes) <= RELEASES_IN_HISTORY
