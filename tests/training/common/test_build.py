"""Releases as they are built: canary answers, scores, and what a run changed in 8 bits."""

from __future__ import annotations

import copy
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.weights import merge_adapter
from models.loading import as_json, load
from models.releases.manifest import Release, ReleaseError, Score, TrainingData
from models.releases.store import open_release
from models.summarization.model import SummarizationModel
from training.common import adapter, build
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


def test_the_canary_answers_and_scores_are_of_the_model_as_served(tmp_path: Path) -> None:
    release = built(tmp_path)
    canary = release.manifest.canary
    served = SummarizationModel.load(open_release(release.path))
    assert canary.inputs == TEXTS
    assert canary.outputs == as_json(served.predict(TEXTS))
    assert [answer["text"] for answer in canary.outputs] == ["Can metformin cause hair loss?", TEXTS[1]]
    assert load(release, dtype="float32").passes_canary()
    seen = []

    def scores(model: SummarizationModel) -> list[Score]:
        seen.extend(model.predict(TEXTS))
        return [SCORE]

    scored = built(tmp_path, scores=scores)
    assert as_json(seen) == scored.manifest.canary.outputs
    assert scored.manifest.scores == [SCORE]
    assert scored.manifest.training_data == [TrainingData(name="none", licence="CC0")]
    assert scored.manifest.code_commit == code_commit()


def test_equal_releases_have_equal_versions(tmp_path: Path) -> None:
    first = built(tmp_path)
    assert built(tmp_path).version == first.version
    assert built(tmp_path, kind="another test").version != first.version
    assert len(list((tmp_path / "root/summarization").iterdir())) == 2


def test_a_release_over_another_base_or_with_code_is_not_built(tmp_path: Path, tiny_bert: str) -> None:
    with pytest.raises(ReleaseError, match="another sha256"):
        built(tmp_path, base_sha256=base_digest(tiny_bert))
    assert not (tmp_path / "root").exists()
    (tmp_path / "source/model.pkl").write_bytes(b"")
    with pytest.raises(ReleaseError, match=r"type \.pkl"):
        built(tmp_path)
    assert list((tmp_path / "root/summarization").iterdir()) == []


def test_the_code_commit_is_unknown_outside_a_checkout_and_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "__file__", str(tmp_path / "build.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert code_commit() == "unknown"
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OSError, match="git"):
        subprocess.run(["git"], check=True)
    assert code_commit() == "unknown"
    assert re.fullmatch(r"[0-9a-f]{12,40}\+?|unknown", code_commit())


@pytest.fixture
def base(tiny_bert: str) -> nn.Module:
    model: nn.Module = Encoder.load(tiny_bert).model
    return model


def changed(base: nn.Module, rank: int) -> nn.Module:
    """A copy whose attention and first dense layer moved by a matrix of this rank."""
    model, numbers = copy.deepcopy(base), torch.Generator().manual_seed(1)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and ("query" in name or "intermediate" in name):
            left = torch.randn(module.out_features, rank, generator=numbers)
            right = torch.randn(rank, module.in_features, generator=numbers)
            module.weight.data += 0.01 * left @ right
    return model


def test_deltas_of_8_bits_come_back_within_half_a_step(base: nn.Module) -> None:
    trained = changed(base, 32)
    trained.get_parameter("encoder.layer.0.output.LayerNorm.weight").data += 0.25
    tensors = adapter.quantized(base, trained)
    assert {t.dtype for n, t in tensors.items() if "LayerNorm" not in n} == {torch.int8, torch.float16}
    merged = copy.deepcopy(base)
    merge_adapter(merged, tensors)
    for (name, one), other in zip(merged.named_parameters(), trained.parameters(), strict=True):
        scale = tensors.get(f"{name}.scale")
        step = float(scale.max()) if scale is not None else 1e-6
        assert (one - other).abs().max() <= 0.51 * step, name
    assert adapter.quantized(base, copy.deepcopy(base)) == {}
