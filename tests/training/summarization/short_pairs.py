"""Four questions about four drugs, and an untrained decoder for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from models.drugs import DrugLexicon
from models.summarization.medical_entities import OwnRecogniser
from training.summarization.data import Corpora, Pair
from training.summarization.network import PointerNetwork
from training.summarization.run import task_of
from training.summarization.trainer import Asked, Settings, Stage

PAIRS = [
    Pair(f"p{i}", f"i have pain {d} and take the drug {d}. is the drug {d} bad?", f"is the drug {d} bad?")
    for i, d in enumerate(["aspirin", "zoloft", "ibuprofen", "metformin"])
]
STAGES = (Stage("pairs", 1, 1e-3, False), Stage("meqsum", 2, 1e-3, True))
SETTINGS = Settings(STAGES, batch=2, negatives=3, queue=6, seed=3)
TASK = task_of(
    Corpora(PAIRS[:2], PAIRS, [], {}),
    OwnRecogniser(None, [], DrugLexicon({n: n for n in (p.question.split()[3] for p in PAIRS)})),
)


def network(base: str, rank: int = 2) -> PointerNetwork:
    targets = [p.summary for p in PAIRS] * 3
    torch.manual_seed(5)
    return PointerNetwork(base, layers=1, rank=rank, trained_layers=1, targets=targets, max_pieces=64)


def asked(pairs: Sequence[Pair]) -> list[Asked]:
    return [Asked(p, TASK.entities.get(p.id, ())) for p in pairs]
