"""Four questions about four drugs, and an untrained network for them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from models.drugs import DrugLexicon
from models.summarization.medical_entities import OwnRecogniser
from training.common.loop import TrainingLoop
from training.summarization.data import Pair
from training.summarization.network import Network
from training.summarization.settings import Settings
from training.summarization.train import Ecl

PAIRS = [
    Pair(f"p{i}", f"i have pain {d} and take the drug {d}. is the drug {d} bad?", f"is the drug {d} bad?")
    for i, d in enumerate(["aspirin", "zoloft", "ibuprofen", "metformin"])
]
RECOGNISER = OwnRecogniser(None, [], DrugLexicon({n: n for n in (p.question.split()[3] for p in PAIRS)}))
SMALL: dict[str, Any] = {"method": "decoder", "epochs": 1, "batch": 2, "negatives": 3, "precision": "float32"}


def network(base: str) -> Network:
    torch.manual_seed(5)
    return Network(base, max_pieces=64)


def trainee_of(base: str, validation: list[Pair] | None = None, **changes: Any) -> Ecl:
    settings = Settings(**SMALL | {"lr": 1e-3, "seed": 3} | changes)
    return Ecl(network(base), settings, PAIRS, validation or [], RECOGNISER)


def loop_of(trainee: Ecl, folder: Path | None = None) -> TrainingLoop:
    return TrainingLoop(trainee, asdict(trainee.settings), folder)


def write_corpus(data: Path) -> Path:
    """Few questions in the form of MeQSum."""
    (data / "questions").mkdir(parents=True)
    rows = [{"id": p.id, "split": "train", "question": p.question, "summary": p.summary} for p in PAIRS]
    rows += [
        {"id": f"v{i}", "split": "train", "question": f"validation question number {i}{i}?", "summary": "v?"}
        for i in range(6)
    ]
    rows.append(
        {"id": "t", "split": "test", "question": "Tea. Is the drug zoloft ok?", "summary": "is zoloft ok?"}
    )
    text = "\n".join(json.dumps(r) for r in rows)
    (data / "questions/meqsum.jsonl").write_text(text, encoding="utf-8")
    return data
