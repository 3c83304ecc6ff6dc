"""Trains the extractor and writes the release: the weights of the rankers and the
lexicons that they were fitted with. The encoder is not changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import save_file

from models.encoder.model import Encoder
from models.releases.manifest import Release, TrainingData
from models.summarization import medical_entities
from models.summarization.extraction.extractor import (
    ANSWER_RANKER,
    INSERTION_RANKER,
    KEY_TENSOR,
    KEY_WEIGHTS,
)
from models.summarization.extraction.message import messages
from models.summarization.extraction.ranker import save
from models.summarization.files import FOCUS_RANKER
from models.summarization.medical_entities import OwnRecogniser
from training.summarization.data import (
    Pair,
    evaluated,
    read_questions,
    without_duplicates,
    without_leaks,
    written_questions,
)
from training.summarization.extraction.key_words import with_key_words
from training.summarization.extraction.train import Weights, train
from training.summarization.release import SOURCES, WHY_EXTRACTIVE, build
from training.summarization.settings import Settings
from training.teaching.batches import ID
from training.teaching.readers import teaching_source

MAX_PIECES = 256
EXTRACTING = "extractive: the asking clause by a trained ranker, with the names that it lacks"
console = Console()


def build_extractive(
    data: Path | None, root: Path, settings: Settings, device: torch.device | str = "cpu"
) -> Release:
    """The release that extracts. It learns from the teaching corpus, and from MeQSum where there is `data`;
    at most `settings.limit` questions of each, if that is not 0.
    """
    base, pairs = settings.backbone, training_pairs(data, settings.limit)
    encoder = Encoder.load(base, device=str(device), max_pieces=MAX_PIECES)
    lexicons = OwnRecogniser.bundled(None)
    read = with_key_words(messages(encoder, lexicons, [p.question for p in pairs]), pairs)
    weights = train(encoder, lexicons.drugs, pairs, read)
    least = weights.thresholds
    console.print(f"{len(pairs)} questions; a name is inserted from probability {least.behind} on")
    configuration = {"max_pieces": MAX_PIECES, "thresholds": least._asdict(), "questions": len(pairs)}
    with tempfile.TemporaryDirectory(prefix="summarization-") as name:
        folder = Path(name)
        _write_rankers(weights, folder)
        return build(
            folder,
            kind=EXTRACTING,
            base=base,
            configuration={**configuration, "why_extractive": WHY_EXTRACTIVE},
            training_data=sources(pairs),
            data=data,
            root=root,
            device=device,
        )


def _write_rankers(weights: Weights, folder: Path) -> None:
    """Writes the rankers, the regression of key words, and the lexicons that they were fitted with."""
    save(weights.focus, folder / FOCUS_RANKER)
    save(weights.answer, folder / ANSWER_RANKER)
    save(weights.insertion, folder / INSERTION_RANKER)
    if weights.key_words is not None:
        save_file({KEY_TENSOR: weights.key_words.weights.contiguous()}, folder / KEY_WEIGHTS)
    medical_entities.write_lexicons(folder)


def training_pairs(data: Path | None, limit: int = 0) -> list[Pair]:
    """Questions of MeQSum's training part and of the teaching corpus, without those of any evaluation."""
    tested = written_questions("held_out")
    meqsum: list[Pair] = []
    if data is not None:
        tested += evaluated(data)
        rows = read_questions(data, "meqsum.jsonl")
        # With their line breaks, as they arrive.
        train_part = [Pair(r["id"], r["question"], r["summary"]) for r in rows if r["split"] == "train"]
        meqsum, _ = without_duplicates(train_part)
    parts = [without_leaks(part, tested)[0] for part in (meqsum, written_questions("train"))]
    return [pair for part in parts for pair in (part[:limit] if limit else part)]


def sources(pairs: Sequence[Pair]) -> list[TrainingData]:
    """The corpora of these pairs."""
    written = sum(p.id.startswith(ID) for p in pairs)
    meqsum = [SOURCES["meqsum"]] if written < len(pairs) else []
    return [*meqsum, teaching_source(written)]
