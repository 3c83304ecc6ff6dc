"""The benchmark of a GPU runs whole on a processor, with tiny releases, and ends in its time."""

from __future__ import annotations

import json
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks import gpu
from benchmarks.feeding import Child, Load
from models.releases.manifest import Release
from models.types import JUDGE

APP = typer.Typer()
APP.command()(gpu.main)
#: A busy machine may need minutes; a quiet one ends sooner.
MINUTES = 6


def answers_late(pipe: Connection) -> None:
    pipe.recv()


def ends(pipe: Connection) -> None:
    raise SystemExit(3)


@pytest.fixture
def pinned(tiny: dict[str, Release], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process loads a tiny release."""
    monkeypatch.setenv("PV_RELEASES", json.dumps({task: str(r.path) for task, r in tiny.items()}))


@pytest.mark.slow
@pytest.mark.usefixtures("pinned")
def test_every_stage_is_measured_in_every_format_or_left_out_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    options = f"--device cpu --small --minutes {MINUTES} --json {file} --data {tmp_path}"
    answer = CliRunner().invoke(APP, options.split())
    assert answer.exit_code == 0, answer.output
    found = json.loads(file.read_bytes())
    assert found["left_out"].keys() == {"CUDA graphs", JUDGE}
    stages = [f"{stage}, {form}" for stage in ("ner", "normalization", "relation") for form in gpu.FORMATS]
    wanted = {f"{stage}, {cell}" for stage in stages for cell in ("1 x 8", "2 x 8")}
    assert found["rows"].keys() == wanted | {"FAISS, 1,000 vectors"}
    for name in wanted:
        row = found["rows"][name]
        # The tiny tagger finds no pair, so that the encoder of relation reads nothing.
        assert row["records_per_second"] > 0 and (row["of_products"] > 0) != name.startswith("relation")
        assert 0 <= row["lock_share"] <= 1


@pytest.mark.slow
def test_what_does_not_fit_into_the_minutes_is_named(tmp_path: Path) -> None:
    run = gpu.Run("cpu", gpu.SMALL, time.monotonic() + 0.1)
    with pytest.raises(TimeoutError):
        run.measure(tmp_path)
    with Child(answers_late) as late:
        assert not run._group("ner, float32", [late], Load(ways=[]), 1.0, time.monotonic() + 0.1)
    assert run.left_out.pop("ner, float32") == "1 x 8, 2 x the best: not within its time"
    assert run.left_out.keys() == {"CUDA graphs", JUDGE}


@pytest.mark.slow
def test_a_process_that_ends_is_told_from_one_that_is_late() -> None:
    with Child(ends) as child, pytest.raises(RuntimeError, match="code 3"):
        child.answer(time.monotonic() + 300)
