"""Options that the commands of training share, and their help."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import pytest
import torch
import typer
from safetensors.torch import save_file
from typer.testing import CliRunner

from models.releases.manifest import ReleaseError
from models.releases.store import BUNDLED
from training.common.corpora import CorpusError
from training.common.program import RELEASES, Output, device_of
from training.common.program_help import help_text, run_program
from training.evaluation.result import EvaluationError

calls: list[Path] = []


def train(output: Output = RELEASES) -> None:
    calls.append(output)


def test_an_unwritable_folder_is_named_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    calls.clear()
    app = typer.Typer()
    app.command()(train)
    assert CliRunner().invoke(app, []).exit_code == 0
    assert CliRunner().invoke(app, ["--output", "new/below"]).exit_code == 0
    assert calls == [RELEASES, Path("new/below")]
    Path("file").touch()
    for given in ("file", "file/below"):
        answer = CliRunner().invoke(app, ["--output", given])
        assert answer.exit_code == 2
        assert "is no folder that this user may write to" in answer.output
    assert len(calls) == 2


def test_devices_folders_and_help_are_those_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of("auto") == device_of("cpu") == torch.device("cpu")
    with pytest.raises(typer.BadParameter, match="no GPU"):
        device_of("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of("auto") == torch.device("cuda")
    # Two releases of a task there, and neither a worker nor `pvstream releases` starts.
    monkeypatch.chdir(BUNDLED.parent.parent)
    assert not RELEASES.resolve().is_relative_to(BUNDLED)
    docstring = "Counts\nwords.\n\n    python -m first\n    python -m second\n\nOne\nmore.\n"
    assert help_text(docstring) == ("Counts words.\n\npython -m first\npython -m second\n\nOne more.")


def count(data: Annotated[Path, typer.Option()]) -> None:
    if data.name == "missing":
        raise EvaluationError(f"{data}:\nno record in it")
    if data.suffix:
        raise ReleaseError(f"{data} has several taggers")
    if data.name == "weights":
        # A disk that is full is no error of the system to the library that writes them.
        save_file({}, data / "weights.safetensors")
    if data.name == "columns":
        raise CorpusError(f"{data} is not in the form of its corpus: KeyError: 'text'")
    (data / "words.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("nowhere", "nowhere/words.txt'\n"),
        ("a.b", "error: a.b has several taggers\n"),
        ("weights", "I/O error: "),
        ("missing", "error: missing: no record in it\n"),
        ("columns", "columns is not in the form of its corpus: KeyError: 'text'\n"),
    ],
)
def test_what_the_user_can_act_on_is_one_line(
    data: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["count", "--data", data])
    with pytest.raises(SystemExit) as ended:
        run_program(count)
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.startswith("error: ")
    assert line in said
    assert said.count("\n") == 1
