"""Trains idiom-aware vectors and writes a release: the adapter or encoder layers, and the embeddings of the
tokens.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import save_file

from models.encoder.added_tokens import ExtendedEmbedding
from models.encoder.base_files import base_digest
from models.idiom.model import LAST, TOKENS
from models.releases.manifest import Release, TrainingData
from training.common import UserError, adapter
from training.common.build import build_release
from training.common.corpora import CorpusError
from training.common.loop import TrainingLoop
from training.evaluation.evaluate import manifest_scores
from training.evaluation.idiom import FOLDER, halves, read_pairs
from training.idiom.data import read_groups, split_by_expression, written_groups
from training.idiom.settings import Settings
from training.idiom.trainer import MOST_STS_LOST, IdiomTrainee
from training.recipes.stages import Place
from training.teaching.batches import PARTS
from training.teaching.readers import idioms, teaching_source

console = Console()
#: Share of SemEval's expressions of which all sentences but one are held out.
HELD_OUT = 0.1
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


def train(
    settings: Settings, data: Path, run: Path | None, device: torch.device | str = "cpu"
) -> tuple[IdiomTrainee, TrainingLoop]:
    """A whole run with its curve printed; the trainee ends with the weights of the best epoch, or as it was
    before training where no epoch was kept. Raises CorpusError where there is no row to train on.
    """
    sts, _ = halves(read_pairs(data / FOLDER, settings.language))
    if settings.corpus == "semeval":
        groups = read_groups(data / FOLDER / "semeval22_train.csv", settings.language)
        training, held_out = split_by_expression(groups, HELD_OUT, settings.seed)
    else:
        training, held_out = (written_groups(idioms(part)) for part in PARTS)
    trainee = IdiomTrainee(settings, training, held_out, sts, device)
    if not trainee.data:
        raise CorpusError(f"{data / FOLDER} has no row to train on in the language {settings.language}")
    console.print(f"{len(trainee.data)} rows, {len(trainee.validation)} pairs for validation")
    untrained = trainee.weights()
    loop = TrainingLoop(trainee, asdict(settings), run)
    loop.run()
    if loop.best is None:
        trainee.load_weights(untrained)
    return trainee, loop


def make(settings: Settings, place: Place) -> Release:
    """Trains, scores, and writes a release. Raises UserError where no epoch was kept and the untrained model
    is no better than the base.
    """
    trainee, loop = train(settings, place.data, place.checkpoints, place.device)
    # Tokens whose embeddings are those of paraphrases are worth a release without any training.
    if loop.best is None and not settings.paraphrase:
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
