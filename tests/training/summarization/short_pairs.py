"""Four questions about four drugs, and an untrained network for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from models.drugs import DrugLexicon
from models.summarization.medical_entities import OwnRecogniser
from training.common.loop import TrainingLoop
from training.summarization.data import Corpora, Pair
from training.summarization.examples import Example, Material, material_of
from training.summarization.networks.pointer_network import PointerNetwork
from training.summarization.settings import Settings
from training.summarization.trainer import SummarizerTrainee

PAIRS = [
    Pair(f"p{i}", f"i have pain {d} and take the drug {d}. is the drug {d} bad?", f"is the drug {d} bad?")
    for i, d in enumerate(["aspirin", "zoloft", "ibuprofen", "metformin"])
]
MATERIAL = material_of(
    Corpora(PAIRS[:2], PAIRS, [], {}),
    OwnRecogniser(None, [], DrugLexicon({n: n for n in (p.question.split()[3] for p in PAIRS)})),
)


def settings(**changes: Any) -> Settings:
    """One epoch of the first stage and two of the second, with both contrastive losses."""
    small: dict[str, Any] = {"layers": 1, "rank": 2, "trained_layers": 1, "pretraining": 1, "epochs": 2}
    small |= {"pretraining_lr": 1e-3, "lr": 1e-3, "batch": 2, "simple": 1.0, "hard": 1.0, "negatives": 3}
    small |= {"queue": 6, "positive": False, "message_share": 0.0, "replay": 0, "seed": 3}
    return Settings(**small | {"precision": "float32"} | changes)


def network(base: str) -> PointerNetwork:
    targets = [p.summary for p in PAIRS] * 3
    torch.manual_seed(5)
    return PointerNetwork(settings(backbone=base), targets, max_pieces=64)


def trainee_of(base: str, material: Material = MATERIAL, **changes: Any) -> SummarizerTrainee:
    return SummarizerTrainee(network(base), settings(**changes), material)


def loop_of(trainee: SummarizerTrainee, folder: Path | None = None) -> TrainingLoop:
    return TrainingLoop(trainee, asdict(trainee.settings), folder)


def examples(pairs: Sequence[Pair]) -> list[Example]:
    return [Example(p, MATERIAL.entities.get(p.id, ())) for p in pairs]
