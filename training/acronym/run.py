"""Trains an m-network that says which long form fits in an acronym's place (Seneviratne et al. 2022), finds
where the uses of known long forms lie, and writes a release.

The paper's network is `--objective m` (or triplet) `--anchor other --pooling mean --distance --no-alone
--no-surface --no-uses --dropout 0.5 --layers 1 --rank 0`. The defaults are what did better on acronyms, or
rows, that training did not see: the sentence is compared with each long form alone, letters and case are
judged too, and the loss is softmax over the long forms. The epoch with the best macro F1 on held-out acronyms
is kept. `--zero-shot` trains nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from safetensors.torch import save_file

from models.acronym.acronym_encoder import Pooling
from models.acronym.m_network import MNetwork
from models.acronym.model import CLINICAL as DICTIONARY
from models.acronym.model import load_dictionary
from models.acronym.scorers import HEAD
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS, base_digest
from models.releases.manifest import Release, Score, TrainingData
from training.acronym.data import CORPORA, read_training, split_acronyms
from training.acronym.trainer import Anchor, Objective, Settings, Trainer, train
from training.acronym.usage_examples import Looks, Uses, find_uses, held_out_score
from training.common import adapter
from training.common.checkpoint import Checkpoint
from training.common.precision import HELP, Precision, resolved
from training.common.publish import OFFERED, offer, print_scores, publish_release
from training.evaluation.acronym import HELD_OUT, SEED, SPLITS
from training.evaluation.evaluate import manifest_scores

console = Console()
ZERO_SHOT_PIECES = 192
CANARY = [
    "Toxic epidermal necrolysis (TEN) began on day 3; TEN resolved after MTX was stopped.",
    "A patient with MS and optic neuritis received interferon beta.",
    "The murmur of MS was louder after the mitral valve was examined.",
    "RA was treated with gold; a CT of the chest was normal.",
    "No acronym stands here.",
]


def write_network(trainer: Trainer, base: Encoder, folder: Path) -> MNetwork:
    """The files of the trained network, and the network as they give it."""
    save_file({n: t.contiguous() for n, t in trainer.head.state_dict().items()}, folder / HEAD)
    for name, tensors in trained_files(trainer, base).items():
        save_file(tensors, folder / name)
    adapter_file, weights = folder / ADAPTER, folder / WEIGHTS
    encoder = Encoder.load(
        trainer.settings.base,
        dtype=getattr(torch, trainer.settings.precision),
        max_pieces=trainer.settings.max_pieces,
        adapter=adapter_file if adapter_file.exists() else None,
        weights=weights if weights.exists() else None,
    )
    return MNetwork(encoder, trainer.head)


def trained_files(trainer: Trainer, base: Encoder) -> dict[str, dict[str, Any]]:
    """File name to tensors; none where only the head was trained."""
    if trainer.upper is None:
        return {}
    if trainer.settings.rank:
        return adapter.files(trainer.encoder.model)
    # The frozen layers are not in what was trained.
    whole = adapter.trainable(base, 0).model
    whole.load_state_dict(trainer.encoder.model.state_dict(), strict=False)
    return adapter.files(whole)


def publish_zero_shot(data: Path | None, dictionary: Path, output: Path, base: str, limit: int) -> Release:
    folder = Path(tempfile.mkdtemp(prefix="acronym-"))
    shutil.copyfile(dictionary, folder / "dictionary.tsv")
    release = publish_release(
        folder,
        task="acronym",
        kind="definitions in the text, else zero-shot sentence distance over a dictionary",
        base=base,
        base_sha256=base_digest(base),
        configuration={
            "max_pieces": ZERO_SHOT_PIECES,
            "short_forms": len(load_dictionary(dictionary)),
        },
        training_data=[],
        canary=CANARY,
        scores=all_scores(data, limit),
        root=output,
    )
    shutil.rmtree(folder)
    return release


def publish_trained(
    trainer: Trainer, data: Path, dictionary: Path, output: Path, looked: Callable[[MNetwork], Looks] | None
) -> Release:
    settings = trainer.settings
    folder = Path(tempfile.mkdtemp(prefix="acronym-"))
    shutil.copyfile(dictionary, folder / "dictionary.tsv")
    network = write_network(trainer, Encoder.load(settings.base), folder)
    uses: Uses | None = None
    if looked is not None:
        uses = find_uses(looked(network), data, load_dictionary(dictionary), settings.seed)
        uses.write(folder)
    release = publish_release(
        folder,
        task="acronym",
        kind=f"definitions in the text, else an m-network ({settings.objective})"
        + (" and prototypes" if uses else ""),
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration={
            "max_pieces": settings.max_pieces,
            "short_forms": len(load_dictionary(dictionary)),
            "network": settings.shape.to_manifest(),
            **({"mixture": uses.made.mixture._asdict()} if uses else {}),
            "casi_rows": {"held_out": HELD_OUT, "seed": SEED},
            "training": {k: v for k, v in asdict(settings).items() if k not in {"base", "max_pieces"}},
        },
        training_data=sources(settings, uses is not None),
        canary=CANARY,
        scores=all_scores(data, 0, load_dictionary(dictionary) if (data / "ade").exists() else None),
        root=output,
    )
    shutil.rmtree(folder)
    return release


def sources(settings: Settings, with_uses: bool) -> list[TrainingData]:
    wanted = {*settings.corpora, *(("casi", "ade") if with_uses else ())}
    return [source for name, source in CORPORA.items() if name in wanted]


def all_scores(
    data: Path | None, limit: int, dictionary: dict[str, list[str]] | None = None
) -> Callable[[Any], list[Score]]:
    """On every split, and on definitions of clinical abstracts where a dictionary is given."""

    def scores(model: Any) -> list[Score]:
        found = manifest_scores("acronym", model, data, SPLITS, limit) if data else []
        return [*found, *([held_out_score(model, data, dictionary)] if data and dictionary else [])]

    return scores


def main(
    data: Annotated[
        Path | None, typer.Option(help="folder with acronyms/ and ade/; needed for training")
    ] = None,
    dictionary: Annotated[Path, typer.Option(help="a .tsv with short_form, long_form")] = DICTIONARY,
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    run: Annotated[Path | None, typer.Option(help="folder of checkpoints; a killed run goes on")] = None,
    zero_shot: Annotated[bool, typer.Option(help="train nothing: distances by the base as it is")] = False,
    corpora: Annotated[str, typer.Option(help=f"of {', '.join(CORPORA)} but ade")] = "sdu22_scientific",
    objective: Annotated[Objective, typer.Option(help="triplet, m or softmax")] = "softmax",
    anchor: Annotated[Anchor, typer.Option(help="own sentence, or other of the same long form")] = "own",
    pooling: Annotated[
        Pooling, typer.Option(help="mean of the text, of the acronym's span, or both")
    ] = "both",
    size: Annotated[int, typer.Option(help="of the dense layer")] = 64,
    distance: Annotated[
        bool, typer.Option(help="the m-network itself; off, other parts stand for it")
    ] = True,
    fit: Annotated[bool, typer.Option(help="also judge the sentence with the long form by itself")] = False,
    alone: Annotated[bool, typer.Option(help="also compare the sentence with the long form alone")] = True,
    surface: Annotated[bool, typer.Option(help="also judge letters, case and number")] = True,
    uses: Annotated[bool, typer.Option(help="prototypes of CASI and of long forms in ADE texts")] = True,
    dropout: Annotated[float, typer.Option(help="before the dense layer; 0.5 in the paper")] = 0.1,
    layers: Annotated[int, typer.Option(help="the last ones that are trained; 0: none")] = 2,
    rank: Annotated[int, typer.Option(help="of the adapter; 0: the layers' own weights")] = 16,
    lr: float = 1e-3,
    head_lr: Annotated[float, typer.Option(help="of what is above the encoder")] = 3e-3,
    epochs: int = 3,
    batch: int = 32,
    rows: Annotated[int, typer.Option(help="of one long form at most; 0: all")] = 3,
    rivals: Annotated[int, typer.Option(help="long forms of a training row at most; 0: all")] = 0,
    max_pieces: int = 128,
    held_out: Annotated[float, typer.Option(help="share of the acronyms, for validation")] = 0.15,
    validate: Annotated[int, typer.Option(help="rows of those at most; 0: all")] = 800,
    seed: int = 0,
    precision: Annotated[Precision, typer.Option(help=HELP)] = "auto",
    limit: Annotated[int, typer.Option(help="rows scored at most, without training; 0: all")] = 0,
    offered: OFFERED = False,
) -> None:
    if zero_shot:
        release = publish_zero_shot(data, dictionary, output, base, limit)
    elif data is None:
        raise typer.BadParameter("training needs --data; --zero-shot does not")
    else:
        settings = Settings(
            base=base,
            corpora=tuple(corpora.split(",")),
            objective=objective,
            anchor=anchor,
            pooling=pooling,
            size=size,
            distance=distance,
            fit=fit,
            alone=alone,
            surface=surface,
            dropout=dropout,
            layers=layers,
            rank=rank,
            lr=lr,
            head_lr=head_lr,
            epochs=epochs,
            batch=batch,
            rows=rows,
            rivals=rivals,
            max_pieces=max_pieces,
            held_out=held_out,
            validate=validate,
            seed=seed,
            precision=resolved(precision),
        )
        release = trained(settings, data, dictionary, output, run, uses)
    print_scores(console, release)
    if offered:
        offer(release, data)


def trained(
    settings: Settings, data: Path, dictionary: Path, output: Path, run: Path | None, uses: bool
) -> Release:
    split = [
        split_acronyms(read_training(data, corpus), settings.held_out, settings.seed)
        for corpus in settings.corpora
    ]
    trainer = Trainer(
        settings, [r for part, _ in split for r in part], [r for _, part in split for r in part]
    )
    plain = asdict(settings)
    train(trainer, Checkpoint(run, plain))
    looked = (lambda network: Looks(network, run, plain)) if uses else None
    return publish_trained(trainer, data, dictionary, output, looked)
