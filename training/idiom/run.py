"""Trains an encoder to place sentences with an idiom by their meaning (He et al. 2024) and writes a release.

In batches of 64 rows that are not shuffled, triplets of anchor, positive and negative with
sim(a, p) - sim(a, n) < 0.4 are kept; the loss is max(0, sim(a, n) - sim(a, p) + 0.3), averaged over its
non-zero terms (sections 3.1 and 3.2). Two things are not the paper's. A marked expression, one token (4.1),
begins as the words that stand in its place in the right paraphrases. `--keep` adds the mean squared
difference between the cosines of paraphrases of different sentences by this encoder and by the untrained one,
so that what is alike elsewhere stays so. The epoch with the best Spearman on held-out expressions is kept,
among those that lose at most `--lose` of Spearman on STS pairs; where there is none, nothing is published.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from safetensors.torch import save_file

from models.encoder.added_tokens import ExtendedEmbedding
from models.encoder.weights import base_digest
from models.idiom.model import LAST, POOLINGS, TOKENS, IdiomModel, Marker, with_pooling
from models.releases.manifest import Release, TrainingData
from training.common import adapter
from training.common.checkpoint import Checkpoint
from training.common.precision import HELP, Precision, resolved
from training.common.publish import print_scores, publish_release
from training.evaluation.evaluate import manifest_scores
from training.evaluation.idiom import FOLDER, halves, pair_counts, read_pairs, scores
from training.idiom.data import read_groups
from training.idiom.trainer import Settings, Trainer, train

console = Console()
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


def write_files(trainer: Trainer, folder: Path) -> None:
    """The files of a release: the adapter, and the rows of the tokens where sentences are marked."""
    model = trainer.encoder.model.model if trainer.settings.pooling != LAST else trainer.encoder.model
    embedding = model.get_input_embeddings()
    if isinstance(embedding, ExtendedEmbedding):
        save_file({"rows": embedding.rows.detach().half().contiguous()}, folder / TOKENS)
        model.set_input_embeddings(embedding.base)
    for name, tensors in adapter.files(model).items():
        save_file(tensors, folder / name)
    model.set_input_embeddings(embedding)


def comparison(trainer: Trainer, data: Path) -> Table:
    """The dev file before and after, with expressions marked and as they stand, by both poolings."""
    table = Table("model", "marked", "pooling", "idiom", "STS", "all")
    pairs = read_pairs(data / FOLDER, trainer.settings.language)
    trained = trainer.model()
    for pooling in POOLINGS:
        plain = Marker([])
        encoders = [
            ("untrained", with_pooling(trained.untrained().encoder, pooling), plain),
            ("trained", with_pooling(trained.encoder, pooling), plain),
            ("trained", with_pooling(trained.encoder, pooling), trainer.marker),
        ]
        for name, encoder, marker in encoders if trainer.marker.tokens else encoders[:2]:
            model = IdiomModel(encoder, marker, trained.base, pooling)
            found = scores(pair_counts(model, pairs))
            marked = "yes" if marker.tokens else "no"
            table.add_row(name, marked, pooling, *(f"{value:.4f}" for value in found.values()))
    return table


def published(trainer: Trainer, data: Path, root: Path) -> Release:
    settings = trainer.settings
    folder = Path(tempfile.mkdtemp(prefix="idiom-"))
    write_files(trainer, folder)
    language = settings.language.lower()
    splits = (f"dev_{language}", "dev_en_heldout") if language == "en" else (f"dev_{language}",)
    release = publish_release(
        folder,
        task="idiom",
        kind="idiom-aware sentence vectors by triplets",
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration={
            "max_pieces": trainer.encoder.max_pieces,
            "pooling": settings.pooling,
            "expressions": list(trainer.marker.expressions),
            "training_seconds": round(trainer.seconds),
            "training": {k: v for k, v in asdict(settings).items() if k not in {"base", "pooling"}},
        },
        training_data=[SEMEVAL],
        canary=CANARY,
        scores=lambda model: manifest_scores("idiom", model, data, splits),
        root=root,
    )
    shutil.rmtree(folder)
    return release


def main(
    data: Annotated[Path, typer.Option(help="folder with idioms/")],
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    run: Annotated[Path | None, typer.Option(help="folder of checkpoints; a killed run goes on")] = None,
    language: Annotated[str, typer.Option(help="EN, or PT over a multilingual base")] = "EN",
    pooling: Annotated[str, typer.Option(help="last_two as in the paper, or last")] = "last",
    mark: Annotated[bool, typer.Option(help="write each expression as one token, as in the paper")] = True,
    paraphrase: Annotated[bool, typer.Option(help="a token begins as the right paraphrase")] = True,
    epochs: int = 6,
    rank: Annotated[int, typer.Option(help="of the adapter; 0: all weights, with --lr 2e-5")] = 16,
    layers: Annotated[int, typer.Option(help="the last ones that are trained; 0: all")] = 0,
    lr: Annotated[float, typer.Option(help="2e-5 in the paper, which trains all weights")] = 3e-4,
    token_lr: Annotated[float, typer.Option(help="of the rows of the tokens")] = 3e-3,
    batch: int = 64,
    triplet: Annotated[float, typer.Option(help="weight of the triplet loss")] = 1.0,
    keep: Annotated[float, typer.Option(help="weight of keeping the cosines of different sentences")] = 20.0,
    sentences: Annotated[int, typer.Option(help="of each expression at most; 0: all")] = 5,
    held_out: Annotated[float, typer.Option(help="share of the expressions, for validation")] = 0.1,
    lose: Annotated[float, typer.Option(help="of STS at most")] = 0.05,
    seed: int = 42,
    precision: Annotated[Precision, typer.Option(help=HELP)] = "auto",
    compare: Annotated[
        bool, typer.Option(help="print the dev scores by both poolings, marked or not")
    ] = True,
) -> None:
    settings = Settings(
        *(
            base,
            language,
            pooling,
            mark,
            paraphrase,
            epochs,
            rank,
            layers,
            lr,
            token_lr,
            batch,
            triplet,
            keep,
        ),
        *(sentences, held_out, lose, seed, resolved(precision)),
    )
    sts, _ = halves(read_pairs(data / FOLDER, language))
    trainer = Trainer(settings, read_groups(data / FOLDER / "semeval22_train.csv", language), sts)
    console.print(f"{len(trainer.data)} rows, {len(trainer.validation)} pairs for validation")
    kept = train(trainer, Checkpoint(run, asdict(settings)))
    if kept is None:
        console.print(f"no epoch is better and loses at most {lose} of Spearman on STS: nothing is published")
        raise typer.Exit(1)
    adapter.restore(trainer.encoder.model, kept)
    if compare:
        console.print(comparison(trainer, data))
    release = published(trainer, data, output)
    print_scores(console, release)
