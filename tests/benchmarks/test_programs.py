"""Every program here can be started: what it imports exists, in this repository and in its tests."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import typer

from benchmarks import evaluation
from tests.docs.documents import ROOT


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


PROGRAMS = sorted(
    module_of(path)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
)


def test_there_are_programs() -> None:
    assert {"benchmarks.table", "benchmarks.chaos.__main__"} < set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_imports_what_exists(name: str) -> None:
    assert callable(importlib.import_module(name).main)


def test_a_task_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="'nerr' is none of ner, "):
        evaluation.main("nerr", tmp_path / "figures.json")
