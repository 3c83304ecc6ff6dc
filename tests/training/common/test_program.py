"""Options of a program from the fields of its settings."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated

import pytest
import torch
import typer
from typer.testing import CliRunner

from models.releases.store import BUNDLED
from training.common.program import RELEASES, Output, device_of, program

calls: list[tuple[object, ...]] = []


@dataclass(frozen=True)
class Colours:
    hue: Annotated[int, typer.Option(min=0, max=9, help="of the wheel")] = 3
    dark: Annotated[bool, typer.Option(help="at night")] = True


@program
def main(settings: Colours, size: Annotated[int, typer.Option(help="in metres")], note: str = "none") -> None:
    """Paints."""
    calls.append((settings, size, note))


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(main)
    answer = CliRunner().invoke(app, arguments)
    return answer.exit_code, answer.output


def test_every_field_of_the_settings_is_an_option_with_its_default() -> None:
    calls.clear()
    assert run("--size", "2") == (0, "")
    assert run("--size", "2", "--hue", "7", "--no-dark", "--note", "x") == (0, "")
    assert calls == [(Colours(), 2, "none"), (Colours(7, False), 2, "x")]


def test_help_bounds_and_missing_options_are_typers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    code, text = run("--help")
    assert code == 0
    assert all(part in text for part in ("Paints.", "--hue", "of the wheel", "--no-dark", "in metres"))
    assert run("--size", "2", "--hue", "11")[0] == 2
    assert run("--hue", "1")[0] == 2


@program
def train(output: Output = RELEASES) -> None:
    calls.append((output,))


def test_a_folder_that_cannot_be_written_is_named_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    calls.clear()
    app = typer.Typer()
    app.command()(train)
    assert CliRunner().invoke(app, []).exit_code == 0
    assert CliRunner().invoke(app, ["--output", "new/below"]).exit_code == 0
    assert calls == [(RELEASES,), (Path("new/below"),)]
    Path("file").touch()
    for given in ("file", "file/below"):
        answer = CliRunner().invoke(app, ["--output", given])
        assert answer.exit_code == 2
        assert "is no folder that this user may write to" in answer.output
    assert len(calls) == 2


def test_a_program_is_called_by_keyword_from_code_too() -> None:
    calls.clear()
    main(size=4, hue=1)
    assert calls == [(Colours(hue=1), 4, "none")]


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of("auto") == device_of("cpu") == torch.device("cpu")
    with pytest.raises(typer.BadParameter, match="no GPU"):
        device_of("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of("auto") == torch.device("cuda")


@pytest.mark.parametrize("task", ["summarization"])
def test_a_release_is_not_written_beside_the_bundled_one_unless_that_is_asked_for(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two releases of a task there, and neither a worker nor `pvstream releases` starts."""
    main = import_module(f"training.{task}.__main__").main
    monkeypatch.chdir(BUNDLED.parent.parent)
    output: Path = signature(main).parameters["output"].default
    assert not output.resolve().is_relative_to(BUNDLED)
