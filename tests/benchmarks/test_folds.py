"""The benchmark over folds, on a tiny base model: it resumes, and refuses folds of other settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from benchmarks import folds

OF_TASK = {
    "relation": (None, ["epochs=1", "negatives=4", "teaching=0.0"]),
    "ner": (folds.__file__.replace("folds.py", "ner_folds.toml"), ["epochs=1", "average=0"]),
}


def run(task: Any, corpus: Path, base: str, result: Path, *given: str, numbers: str = "1") -> dict[str, Any]:
    recipe, settings = OF_TASK[task]
    changes = [f"base={base}", *settings, *given]
    folds.main(
        task, corpus, result, Path(recipe) if recipe else None, changes, numbers, grouped=True, device="cpu"
    )
    content: dict[str, Any] = json.loads(result.read_bytes())
    return content


@pytest.mark.parametrize("task", OF_TASK)
def test_folds_that_are_in_the_file_are_not_trained_again(
    task: str, corpus: Path, tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tmp_path / "groups.json"
    first = run(task, corpus, tiny_bert, result)
    assert first["folds_done"] == 1
    assert set(first["definitions"]) == set(first["folds"]["1"]["scores"]) != set()
    assert first["command"].startswith("python -m benchmarks.folds")
    monkeypatch.setattr(folds, "fold_row", lambda *_: pytest.fail("trained again"))
    assert run(task, corpus, tiny_bert, result)["folds"] == first["folds"]
    with pytest.raises(typer.BadParameter, match="settings"):
        run(task, corpus, tiny_bert, result, "seed=1")
    with pytest.raises(typer.BadParameter, match="--folds 0"):
        run(task, corpus, tiny_bert, result, numbers="0")


def test_a_mean_over_folds_has_a_standard_deviation_and_baselines() -> None:
    rows = {str(n): {"scores": {"f": n}, "baselines": {"f": 0.5}, "seconds": 10} for n in (0.6, 0.8)}
    found = folds.summary(rows)
    assert found["f"] == pytest.approx(0.7)
    assert found["f_sd"] == pytest.approx(np.std([0.6, 0.8], ddof=1), abs=1e-4)
    assert (found["f_baseline"], found["folds_done"]) == (0.5, 2)
