"""What do ECL's contrastive losses contribute (Table 5 of the paper)? With both, without simple negatives,
without hard negatives and without both, each with several seeds, on the test part of MeQSum.

Each loss has weight 1, as in the paper, and no pairs of the first stage are replayed in the second. The
decoder generates greedily, without guard and templates. The first stage does not use the losses: it is
trained once for all variants (`--pretraining`) or loaded from a run that ended after it (`--start`). The
seeds are those of the second stage; validation questions and test part are the same for all. Each result is
written as soon as it is measured; results that are in the file are not measured again.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.machine import provenance, write_atomically
from models.ner.model import NerModel
from models.summarization import medical_entities
from models.summarization.decoding.beam_search import Search
from training.common.loop import TrainingLoop
from training.common.precision import PrecisionOption, resolved
from training.common.program_help import run_program
from training.evaluation.summarization.measure import ROUGES, bundled_tagger, summary_counts
from training.summarization.data import Corpora, Pair, read, read_meqsum
from training.summarization.ecl.trainer import SCORE, SummarizerTrainee
from training.summarization.examples import Material, material_of
from training.summarization.messages import patient_sentences
from training.summarization.networks.hub_network import network_of
from training.summarization.networks.network import Network
from training.summarization.settings import Settings

console = Console()
#: Seed of the validation part; releases use the same.
SPLIT = 42
#: Variant to the weights of the loss with simple negatives and of the loss with hard negatives.
VARIANTS = {"ECL": (1.0, 1.0), "ECL-s": (0.0, 1.0), "ECL-h": (1.0, 0.0), "ECL-s,-h": (0.0, 0.0)}
#: Table 5 of the paper: MeQSum, ROUGE-1 of BART large, computed by py-rouge.
PUBLISHED = {"ECL": 52.85, "ECL-s": 52.10, "ECL-h": 51.72, "ECL-s,-h": 46.17}


@dataclass(frozen=True, slots=True)
class Setup:
    """What all variants share."""

    trainee: SummarizerTrainee
    corpora: Corpora
    material: Material
    common: Settings
    """Settings of both stages."""
    initial: Sequence[Any]
    """Weights of the network after the first stage."""


def set_up(data: Path, common: Settings, first: Settings, start: Path | None, limit: int) -> Setup:
    """Reads the data, and trains the first stage or loads its weights from the run in `start`."""
    recogniser = medical_entities.recogniser(NerModel.load(bundled_tagger()), data / "stanza")
    corpora = read(data, held_out=100, seed=SPLIT, limit=limit)
    messages = first.message_share > 0 and start is None
    material = material_of(corpora, recogniser, sentences=patient_sentences(data) if messages else [])
    network = network_of(first, corpora)
    trainee = SummarizerTrainee(network, first, material)
    if start:
        trainee.start_from(start)
    else:
        fit(network, first, corpora, material)
    return Setup(trainee, corpora, material, common, trainee.weights())


def variant_row(setup: Setup, name: str, seed: int, epochs: int, test: list[Pair]) -> dict[str, Any]:
    """Trains the second stage of a variant from the initial weights and scores it on the test questions."""
    setup.trainee.load_weights(setup.initial)
    network = setup.trainee.network
    simple, hard = VARIANTS[name]
    settings = replace(setup.common, pretraining=0, epochs=epochs, simple=simple, hard=hard, seed=seed)
    validation = fit(network, settings, setup.corpora, setup.material)
    row: dict[str, Any] = {"variant": name, "seed": seed, "validation_rouge1": validation}
    return row | rouge_of(network, test, Search(beams=1)) | {"settings": asdict(settings)}


def fit(network: Network, settings: Settings, corpora: Corpora, material: Material) -> float | None:
    """Trains and keeps the best weights; returns the best validation score if the last stage is validated."""
    trainee = SummarizerTrainee(network, settings, material, corpora.validation)
    loop = TrainingLoop(trainee, asdict(settings))
    loop.run()
    return round(loop.best.scores[SCORE], 2) if loop.best and loop.best.scores else None


def rouge_of(network: Network, pairs: list[Pair], search: Search) -> dict[str, float]:
    """ROUGE F1 of the first hypotheses, by name."""
    hypotheses = network.writer(search).write([p.question for p in pairs])
    counts = summary_counts([h[0].text for h in hypotheses], [p.summary for p in pairs])
    return dict(zip(ROUGES, counts[:, : len(ROUGES)].mean(0).round(2).tolist(), strict=True))


def summary(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of each variant over its seeds."""
    figures: dict[str, Any] = {}
    for name in VARIANTS:
        own = [r for r in rows.values() if r["variant"] == name]
        for rouge in ROUGES if own else ():
            values = [r[rouge] for r in own]
            spread = f" (sd {statistics.stdev(values):.2f})" if len(values) > 1 else ""
            figures[f"{name} {rouge}"] = f"{statistics.mean(values):.2f}{spread}, {len(values)} seeds"
    return figures


def write_results(path: Path, rows: dict[str, dict[str, Any]]) -> None:
    published = {f"{name} rouge1, published, BART large": value for name, value in PUBLISHED.items()}
    content = summary(rows) | published | provenance("summarization.ecl_ablations") | {"rows": rows}
    write_atomically(path, content)


def main(
    data: Annotated[Path, typer.Option(help="folder with questions/")],
    result: Annotated[Path, typer.Option("--json", help="file to which results are added")],
    start: Annotated[
        Path | None, typer.Option(help="folder of a run that ended after its first stage")
    ] = None,
    backbone: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    seeds: Annotated[int, typer.Option(help="number of seeds, from 1")] = 3,
    pretraining: Annotated[int, typer.Option(help="epochs of the first stage, without --start")] = 10,
    epochs: Annotated[int, typer.Option(help="epochs of the second stage, MeQSum")] = 12,
    negatives: Annotated[int, typer.Option(help="hard negatives of a question")] = 8,
    pretraining_lr: Annotated[float, typer.Option(help="learning rate of the first stage")] = 4e-4,
    lr: Annotated[float, typer.Option(help="learning rate of the second stage")] = 2e-4,
    message_share: Annotated[float, typer.Option(help="share of pairs put into patients' messages")] = 0.8,
    limit: Annotated[int, typer.Option(help="maximum number of pairs of each corpus; 0: all")] = 0,
    questions: Annotated[int, typer.Option(help="maximum number of test questions; 0: all")] = 0,
    precision: PrecisionOption = "auto",
) -> None:
    rows: dict[str, dict[str, Any]] = json.loads(result.read_bytes())["rows"] if result.exists() else {}
    missing = [(s, n) for s in range(1, seeds + 1) for n in VARIANTS if f"{n} seed {s}" not in rows]
    if missing:
        test = read_meqsum(data, "test")[: questions or None]
        # As in the paper: nothing is replayed, the right summary is not in the denominator.
        common = Settings(
            backbone=backbone,
            pretraining_lr=pretraining_lr,
            lr=lr,
            message_share=message_share,
            negatives=negatives,
            positive=False,
            replay=0,
            precision=resolved(precision),
        )
        first = replace(common, seed=SPLIT, pretraining=pretraining, epochs=0)
        setup = set_up(data, common, first, start, limit)
    for seed, name in missing:
        console.print(f"{name}, seed {seed}")
        rows[f"{name} seed {seed}"] = variant_row(setup, name, seed, epochs, test)
        write_results(result, rows)
    console.print(summary(rows))


if __name__ == "__main__":
    run_program(main)
