"""A wrong argument ends each program of `python -m` with exit code 2, before anything is read or written."""

from __future__ import annotations

import inspect
import runpy
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.main import get_command

from tests.programs import programs

pytestmark = pytest.mark.slow
PROGRAMS = [*programs("training"), *programs("benchmarks"), "docs.generate"]
NUMBERS = (int, float, int | None, float | None)


def exit_code(program: str, *arguments: str) -> object:
    """Of `python -m program arguments`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [program, *arguments])
        # Another test may have imported it, which runpy warns of. A package stays: imported again it would be
        # another one for its parent than for the tests that have it already.
        patch.delitem(sys.modules, module_of(program), raising=False)
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(program, run_name="__main__")
    return ended.value.code


@cache
def main_of(program: str) -> Callable[..., None]:
    """The function of a program; of a program with several commands a function without options."""
    return getattr(import_module(module_of(program)), "main", lambda: None)


def module_of(program: str) -> str:
    """The name of the module that `python -m program` runs."""
    spec = find_spec(program)
    is_package = spec is not None and spec.submodule_search_locations is not None
    return f"{program}.__main__" if is_package else program


@cache
def command_of(program: str) -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(main_of(program))
    return get_command(app)


def parsed(program: str, *arguments: str) -> object:
    """The exit code of the command line of a program, in this process."""
    with pytest.raises(SystemExit) as ended:
        command_of(program).main(args=list(arguments), prog_name=program)
    return ended.value.code


def options(program: str) -> Iterator[tuple[str, Any]]:
    """Each option of a program, with its type."""
    for name, parameter in inspect.signature(main_of(program), eval_str=True).parameters.items():
        kind, *about = get_args(parameter.annotation) or (parameter.annotation,)
        declared = [d for a in about for d in getattr(a, "param_decls", None) or () if d.startswith("--")]
        if not any(isinstance(a, typer.models.ArgumentInfo) for a in about):
            yield (declared or [f"--{name.replace('_', '-')}"])[0].split("/")[0], kind


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_option_that_is_none_ends_with_exit_code_2(program: str) -> None:
    assert exit_code(program, "--nosuch") == 2


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_word_for_a_number_and_data_that_are_absent_are_code_2(program: str, tmp_path: Path) -> None:
    for option, kind in options(program):
        if kind in NUMBERS:
            assert parsed(program, option, "nosuch") == 2, option
        if option == "--data" and program != "benchmarks.speed":
            assert parsed(program, option, str(tmp_path / "none")) == 2
