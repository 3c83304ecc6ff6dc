"""Four questions about four drugs, and an untrained network for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from models.drugs import DrugLexicon
from models.summarization.medical_entities import OwnRecogniser
from training.common.loop import TrainingLoop
from training.summarization.data import Corpora, Pair
from training.summarization.ecl.trainer import SummarizerTrainee
from training.summarization.examples import Example, Material, material_of
from training.summarization.networks.pointer_network import PointerNetwork
from training.summarization.settings import Settings

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
    small |= {"positive": False, "message_share": 0.0, "replay": 0, "seed": 3}
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


def write_corpus(data: Path) -> Path:
    """Few questions and a patient's sentence, in the forms of the public corpora."""
    (data / "questions").mkdir(parents=True)
    rows = [{"id": p.id, "split": "train", "question": p.question, "summary": p.summary} for p in PAIRS]
    rows += [
        {"id": f"v{i}", "split": "train", "question": f"validation question number {i}{i}?", "summary": "v?"}
        for i in range(6)
    ]
    rows.append(
        {"id": "t", "split": "test", "question": "Tea. Is the drug zoloft ok?", "summary": "is zoloft ok?"}
    )
    rqe = [{"id": "r", "entails": True, "question": "does the drug hurt? i fear it.", "faq": "does it hurt?"}]
    for name, lines in (("meqsum", rows), ("rqe_train", rqe)):
        text = "\n".join(json.dumps(r) for r in lines)
        (data / f"questions/{name}.jsonl").write_text(text, encoding="utf-8")
    (data / "psytar").mkdir()
    sentence = "\n".join([*(f"{w}\tO" for w in ("i", "feel", "so", "tired")), ""])
    (data / "psytar/ner_train.conll").write_text(sentence, encoding="utf-8")
    return data
