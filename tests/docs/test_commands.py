"""Every command of the documentation exists with its options; those that need no broker are run here.

tests/integration/commands/test_docs.py runs the others. Of a block marked `<!-- not run: reason -->` they are
only checked.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import runpy
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from streams.__main__ import app
from streams.settings import Settings
from tests.docs.documents import ALONE, DOCUMENTS, ROOT, Command, commands
from tests.docs.workspace import Workspace
from tests.streams.cli.command_line import CommandLine
from training.recipes.recipe import task_names

COMMANDS = commands()
#: Blocks and commands that may be marked as not run: those that install, train, deploy, start the tests or
#: read a live service.
MOST_NOT_RUN = 19
#: Programs of others. All but openssl are in blocks that are not run.
OTHERS = frozenset({".", "pip", "docker", "kubectl", "kafka-acls.sh", "openssl"})


def is_run_here(command: Command) -> bool:
    match command.words:
        case ["pvstream", name, *_]:
            return command.not_run is None and name in ALONE
        case ["openssl", *_]:
            return command.not_run is None
        case ["python", "-m", module, *_]:
            # The check of the teaching corpus, half a minute, runs in the tests of that corpus.
            return command.not_run is None and module != "training.teaching"
    return False


@cache
def help_of(module: str, *more: str) -> str:
    """What `python -m module ... --help` prints."""
    out = io.StringIO()
    arguments, sys.argv = sys.argv, [module, *more, "--help"]
    try:
        with (
            contextlib.redirect_stdout(out), contextlib.suppress(SystemExit), warnings.catch_warnings(),
            pytest.MonkeyPatch.context() as patch,
        ):  # fmt: skip
            # Another test may have imported the module.
            warnings.simplefilter("ignore", RuntimeWarning)
            patch.setenv("COLUMNS", "200")
            runpy.run_module(module, run_name="__main__")
    finally:
        sys.argv = arguments
    return out.getvalue()


@cache
def command_line() -> Any:
    """All commands of pvstream."""
    return get_command(app)


def options_of(name: str, *more: str) -> set[str]:
    """The options of a command of pvstream, or of a command of a group of commands."""
    found = command_line()
    for part in (name, *more):
        subcommands = getattr(found, "commands", {})
        if part in subcommands:
            found = subcommands[part]
    return {option for p in found.params for option in (*p.opts, *p.secondary_opts)}


def check_variable(name: str) -> None:
    assert not name.startswith("PV_") or name.removeprefix("PV_").lower() in Settings.model_fields


def check(words: Sequence[str], options: Sequence[str]) -> None:
    """Fails where a program, a command or an option does not exist."""
    match words:
        case ["make", *targets]:
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            for target in targets:
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        case ["export", *assignments]:
            for assignment in assignments:
                check_variable(assignment.split("=")[0])
        case ["pvstream", name, *more]:
            assert name in command_line().commands
            assert set(options) <= options_of(name, *more[:1])
        case ["python", "-m", "pytest", *files]:
            assert all((ROOT / file).exists() for file in files)
        case ["python", "-m", "training", task, *_]:
            assert f" {task} [OPTIONS]" in help_of("training", task)
            assert set(options) <= set(re.findall(r"--[a-z][a-z0-9-]*", help_of("training", task)))
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None
            if options:
                assert set(options) <= set(re.findall(r"--[a-z][a-z0-9-]*", help_of(module)))
        case [program, *_]:
            assert program in OTHERS, program


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_command_exists_with_its_options(command: Command) -> None:
    check(command.words, command.options)
    for name, _ in command.variables:
        check_variable(name)


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "Makefile"], ids=lambda path: path.name)
def test_every_program_that_a_page_names_exists(path: Path) -> None:
    assert [module for module in _named_programs(path) if not _is_program(module)] == []


def test_every_task_has_a_training_command_and_the_page_names_the_programs_of_figures() -> None:
    named = _named_programs(ROOT / "docs/train.md")
    assert "benchmarks.folds" in named
    modules = {c.words[2] for c in COMMANDS if c.words[:2] == ("python", "-m")}
    tasks = {path.parent.name for path in (ROOT / "training").glob("*/__main__.py")}
    assert {f"training.{task}" for task in tasks} <= modules
    recipes = {c.words[3] for c in COMMANDS if c.words[:3] == ("python", "-m", "training")}
    assert set(task_names()) <= recipes


def _named_programs(path: Path) -> list[str]:
    """The modules behind `python -m`, and those that stand alone between backquotes."""
    text = path.read_text(encoding="utf-8")
    return re.findall(r"(?:python -m\s+|(?<=`))((?:benchmarks|docs|training)\.[\w.]*\w)", text)


def _is_program(module: str) -> bool:
    spec = importlib.util.find_spec(module) if importlib.util.find_spec(module.rpartition(".")[0]) else None
    return spec is not None and (
        spec.submodule_search_locations is None or importlib.util.find_spec(f"{module}.__main__") is not None
    )


def test_what_is_not_run_is_little_and_has_a_reason() -> None:
    skipped = {(c.document, c.not_run) for c in COMMANDS if c.not_run}
    for document, reason in sorted(skipped, key=str):
        print(f"{document}: not run: {reason}")
    assert 0 < len(skipped) <= MOST_NOT_RUN
    for command in COMMANDS:
        if command.not_run:
            assert re.search(
                r"install|suite|tests|trains|Docker|cluster|rewrites|takes minutes", command.not_run
            )


def test_the_page_about_training_has_the_commands_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (target,) = re.findall(r"^train: .*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    lines = re.findall(r"^\t\$\(BIN\)/python -m (training.+)$", target, re.MULTILINE)
    stated = {" ".join(c.words[2:]) for c in COMMANDS if c.document == "docs/train.md"}
    assert len(lines) == target.count("\n") > 1
    assert {line.replace("$(DATA)", "corpora") for line in lines} <= stated


@pytest.mark.slow
def test_every_command_that_needs_no_broker_works(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace.folder)
    pvstream = CommandLine(monkeypatch, capsys)
    for command in (c for c in COMMANDS if is_run_here(c)):
        words = workspace.words(command)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in workspace.variables(command).items():
                patch.setenv(name, value)
            match words:
                case ["pvstream", *arguments]:
                    answer = pvstream(*arguments)
                    assert answer.code == 0, f"{command}\n{answer.err}"
                case ["python", "-m", module, *arguments]:
                    patch.setattr(sys, "argv", [module, *arguments])
                    # Another test may have imported the program, which runpy warns of.
                    patch.delitem(sys.modules, f"{module}.__main__", raising=False)
                    with pytest.raises(SystemExit) as ended:
                        runpy.run_module(module, run_name="__main__")
                    assert not ended.value.code, command
                case [program, *_]:
                    if shutil.which(program):
                        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
                        assert done.returncode == 0, f"{command}\n{done.stderr}"
