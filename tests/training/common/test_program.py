"""Options that the commands of training share."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from models.releases.store import BUNDLED
from training.common.program import RELEASES, Output, device_of

calls: list[Path] = []


def train(output: Output = RELEASES) -> None:
    calls.append(output)


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
    assert calls == [RELEASES, Path("new/below")]
    Path("file").touch()
    for given in ("file", "file/below"):
        answer = CliRunner().invoke(app, ["--output", given])
        assert answer.exit_code == 2
        assert "is no folder that this user may write to" in answer.output
    assert len(calls) == 2


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of("auto") == device_of("cpu") == torch.device("cpu")
    with pytest.raises(typer.BadParameter, match="no GPU"):
        device_of("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of("auto") == torch.device("cuda")


def test_a_release_is_not_written_beside_the_bundled_one_unless_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two releases of a task there, and neither a worker nor `pvstream releases` starts."""
    monkeypatch.chdir(BUNDLED.parent.parent)
    assert not RELEASES.resolve().is_relative_to(BUNDLED)
