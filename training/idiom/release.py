"""A release of idiom-aware vectors: the adapter or encoder layers, and the embeddings of the tokens."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

from safetensors.torch import save_file

from models.encoder.added_tokens import ExtendedEmbedding
from models.encoder.base_files import base_digest
from models.encoder.capabilities import Need
from models.idiom import LAST, TOKENS
from models.releases.manifest import Release, TrainingData
from training.common import UserError, adapter
from training.common.build import build_release
from training.common.program import check_base
from training.evaluation.evaluate import manifest_scores
from training.idiom.settings import Settings
from training.idiom.train import MOST_STS_LOST, IdiomTrainee, train
from training.recipes.stages import Place, Task
from training.teaching.readers import idioms, teaching_source

SEMEVAL = TrainingData(
    name="SemEval-2022 task 2B (Tayyar Madabushi et al. 2022), training part", licence="GPL-3.0"
)
CANARY = [
    "My head is killing me since I take these pills.",
    "My head hurts badly since I take these pills.",
    "My head is murdering me since I take these pills.",
    "I am a night owl and could not sleep a wink.",
    "I am a nocturnal person and could not sleep at all.",
    "The weather was fine.",
]


def make(settings: Settings, place: Place) -> Release:
    """Trains, scores, and writes a release. Raises UserError where no epoch was kept and the untrained model
    is no better than the base.
    """
    trainee, loop = train(settings, place.data, place.checkpoints, place.device)
    # Tokens whose embeddings are those of paraphrases are worth a release without any training.
    if not settings.paraphrase and not (loop.best and loop.best.number):
        limit = f"loses at most {MOST_STS_LOST} of Spearman on STS"
        raise UserError(f"no epoch is better and {limit}: nothing is built")
    with tempfile.TemporaryDirectory(prefix="idiom-") as name:
        write_files(trainee, Path(name))
        return _built(Path(name), trainee, round(loop.seconds), place)


def write_files(trainee: IdiomTrainee, folder: Path) -> None:
    """Writes the files of a release: the trained weights, and the embeddings of the tokens."""
    model = trainee.encoder.model.model if trainee.settings.pooling != LAST else trainee.encoder.model
    embedding = model.get_input_embeddings()
    if isinstance(embedding, ExtendedEmbedding):
        save_file({"rows": embedding.rows.detach().half().cpu().contiguous()}, folder / TOKENS)
        # The names of the trained weights must be those of the base.
        model.set_input_embeddings(embedding.base)
    for name, tensors in adapter.files(model).items():
        save_file(tensors, folder / name)
    model.set_input_embeddings(embedding)


def _built(folder: Path, trainee: IdiomTrainee, seconds: int, place: Place) -> Release:
    settings = trainee.settings
    language = settings.language.lower()
    splits = (f"dev_{language}", "dev_en_heldout") if language == "en" else (f"dev_{language}",)
    return build_release(
        folder,
        task="idiom",
        kind="idiom-aware sentence vectors by triplets",
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration={
            "max_pieces": trainee.encoder.max_pieces,
            "pooling": settings.pooling,
            "expressions": list(trainee.marker.expressions),
            "training_seconds": seconds,
            "training": {k: v for k, v in asdict(settings).items() if k not in {"base", "pooling"}},
        },
        training_data=_sources(settings),
        canary=CANARY,
        scores=partial(manifest_scores, "idiom", data=place.data, splits=splits) if place.is_scored else None,
        root=place.output,
        device=trainee.device,
    )


def _sources(settings: Settings) -> list[TrainingData]:
    return [SEMEVAL if settings.corpus == "semeval" else teaching_source(len(idioms("train")))]


TASK = Task(Settings, check=lambda settings: check_base(settings.base, Need()), train=make)
