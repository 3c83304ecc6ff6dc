"""Every bundled release gives with the packed encoder what it gives with transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
from torch import Tensor

from models.encoder import model as encoder_module
from models.encoder.model import Encoder
from models.encoder.packed.bert import PackedBert
from models.loading import as_json, model_class, same_answers
from models.normalization.context_refining import marked_sentences
from models.releases.store import open_release
from models.text import word_texts
from models.types import Query
from streams.cli.demo.run import samples
from tests.models.pretrained.test_releases import PATHS
from tests.same import TOLERANCE


def texts() -> list[str]:
    """Every tenth sample."""
    lines = [line for path in samples().values() for line in path.read_bytes().splitlines()]
    return [orjson.loads(line)["text"] for line in lines[::10]]


def inputs(task: str) -> list[Any]:
    if task != "normalization":
        return list(texts())
    return [Query(t, 0, len(" ".join(t.split()[:3])), " ".join(t.split()[:3])) for t in texts()]


def encoders(model: Any) -> list[Encoder]:
    match model.task:
        case "normalization" if model.refiner is not None:
            return [model.refiner.isolated, model.refiner.context]
        case "relation":
            return [model.spaces.encoder, model.spaces.upper]
    return [model.encoder]


@torch.inference_mode()
def vectors(model: Any) -> list[Tensor]:
    """What the encoders of a model return for the texts."""
    match model.task:
        case "normalization" if model.refiner is not None:
            sequences = [s for s in marked_sentences(model.refiner.context, inputs(model.task)) if s]
            return [model.refiner.isolated.mean_pooled(texts()), model.refiner.context.pool(sequences)]
        case "relation":
            encoded = model.spaces.encode([word_texts(t) for t in texts()])
            return [*(e.vectors for e in encoded), *model.spaces.upper.word_vectors_above(encoded)]
    return list(model.encoder.word_vectors([word_texts(t) for t in texts()]))


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda p: str(p.parent.name))
def test_a_release_answers_as_with_transformers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = open_release(path)
    packed = model_class(release.task).load(release)
    assert all(isinstance(e.model, PackedBert) for e in encoders(packed))
    monkeypatch.setattr(encoder_module, "load_wordpiece", lambda folder: None)
    theirs = model_class(release.task).load(release)
    assert not any(isinstance(e.model, PackedBert) for e in encoders(theirs))
    pairs = list(zip(vectors(packed), vectors(theirs), strict=True))
    assert max(float((a - b).abs().max()) for a, b in pairs if a.numel()) < 1e-5
    answers, expected = (as_json(m.predict(inputs(release.task))) for m in (packed, theirs))
    assert sum(map(bool, expected)) > 5, sum(map(bool, expected))
    assert same_answers(answers, expected, TOLERANCE)
