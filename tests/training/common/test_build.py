"""Publishing: canary answers and scores come from the model as it will be served."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from models.encoder.base_files import base_digest
from models.loading import as_json, load
from models.releases.manifest import Release, ReleaseError, Score, TrainingData
from models.releases.store import open_release
from models.summarization.model import SummarizationModel
from training.common import build
from training.common.build import build_release, code_commit

TEXTS = ["On it for years. Can metformin cause hair loss? Thanks.", "tell me about gout"]
SCORE = Score(
    name="rouge1",
    value=31.5,
    definition="mean F1",
    data="two questions",
    records=2,
    baseline=None,
    baseline_definition="first sentence",
)


def built(folder: Path, base: str = "mini", **changes: Any) -> Release:
    (folder / "source").mkdir(exist_ok=True)
    arguments: dict[str, Any] = {
        "task": "summarization",
        "kind": "a test",
        "base": base,
        "base_sha256": base_digest(base),
        "configuration": {"max_pieces": 64},
        "training_data": [TrainingData(name="none", licence="CC0")],
        "canary": TEXTS,
        "scores": lambda model: [SCORE],
        "root": folder / "root",
    }
    return build_release(folder / "source", **(arguments | changes))


def test_the_canary_answers_are_those_of_the_model_as_served(tmp_path: Path) -> None:
    release = built(tmp_path)
    canary = release.manifest.canary
    served = SummarizationModel.load(open_release(release.path))
    assert canary.inputs == TEXTS
    assert canary.outputs == as_json(served.predict(TEXTS))
    assert [answer["text"] for answer in canary.outputs] == ["Can metformin cause hair loss?", TEXTS[1]]
    assert load(release, dtype="float32").passes_canary()


def test_the_scores_are_asked_of_that_model(tmp_path: Path) -> None:
    seen = []

    def scores(model: SummarizationModel) -> list[Score]:
        seen.extend(model.predict(TEXTS))
        return [SCORE]

    release = built(tmp_path, scores=scores)
    assert as_json(seen) == release.manifest.canary.outputs
    assert release.manifest.scores == [SCORE]
    assert release.manifest.training_data == [TrainingData(name="none", licence="CC0")]
    assert release.manifest.code_commit == code_commit()


def test_equal_releases_have_equal_versions(tmp_path: Path) -> None:
    first = built(tmp_path)
    assert built(tmp_path).version == first.version
    assert built(tmp_path, kind="another test").version != first.version
    assert len(list((tmp_path / "root/summarization").iterdir())) == 2


def test_a_release_over_another_base_than_declared_is_not_built(tmp_path: Path, tiny_bert: str) -> None:
    with pytest.raises(ReleaseError, match="another sha256"):
        built(tmp_path, base_sha256=base_digest(tiny_bert))
    assert not (tmp_path / "root").exists()


def test_a_folder_with_a_file_that_may_not_be_in_a_release_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/model.pkl").write_bytes(b"")
    with pytest.raises(ReleaseError, match=r"type \.pkl"):
        built(tmp_path)
    assert list((tmp_path / "root/summarization").iterdir()) == []


def test_the_code_commit_is_twelve_digits_with_a_mark_for_changes_or_unknown() -> None:
    assert re.fullmatch(r"[0-9a-f]{12,40}\+?|unknown", code_commit())


def test_outside_a_checkout_the_code_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "__file__", str(tmp_path / "build.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert code_commit() == "unknown"


def test_without_git_the_code_commit_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OSError, match="git"):
        subprocess.run(["git"], check=True)
    assert code_commit() == "unknown"
