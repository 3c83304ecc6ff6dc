"""What do ECL's contrastive losses bring (Table 5 of the paper)? All, without simple negatives, without hard
ones, without both, each with several seeds, on MeQSum's test part.

Losses weigh 1, as in the paper, and nothing is replayed. The decoder answers alone, greedily, without guard
and forms. The first stage knows nothing of the losses: it is trained once for all (`--pretraining`), or taken
from a run that has ended there (`--start`); seeds are those of the second stage, and validation questions and
test part are the same for all. Each result is written as soon as it is there, and those that are there are
not made again.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.machine import described, write_whole
from models.ner.model import NerModel
from models.summarization import medical_entities
from models.summarization.beam_search import Search
from training.common.loop import TrainingLoop
from training.common.precision import Precision, resolved
from training.evaluation.summarization import ROUGES, bundled_tagger, summary_counts
from training.summarization.data import Corpora, Pair, read, read_meqsum
from training.summarization.examples import Material, material_of
from training.summarization.hub_network import network_of
from training.summarization.messages import patient_sentences
from training.summarization.network import Network
from training.summarization.settings import Settings
from training.summarization.trainer import SCORE, SummarizerTrainee

console = Console()
#: Seed of the validation part, that of a release.
SPLIT = 42
#: Variant to the weights of the simple and of the hard loss.
VARIANTS = {"ECL": (1.0, 1.0), "ECL-s": (0.0, 1.0), "ECL-h": (1.0, 0.0), "ECL-s,-h": (0.0, 0.0)}
#: Table 5, MeQSum, ROUGE-1 of BART large by py-rouge.
PUBLISHED = {"ECL": 52.85, "ECL-s": 52.10, "ECL-h": 51.72, "ECL-s,-h": 46.17}


def fit(network: Network, settings: Settings, corpora: Corpora, material: Material) -> float | None:
    """Trains; the best validation score of the last stage where it was validated."""
    loop = TrainingLoop(SummarizerTrainee(network, settings, material, corpora.validation), asdict(settings))
    loop.run()
    return round(loop.best.scores[SCORE], 2) if loop.best and loop.best.scores else None


def measured(network: Network, tested: list[Pair], search: Search) -> dict[str, float]:
    """ROUGE F1 of the first hypotheses."""
    found = network.writer(search).write([p.question for p in tested])
    counts = summary_counts([f[0].text for f in found], [p.summary for p in tested])
    return dict(zip(ROUGES, counts[:, : len(ROUGES)].mean(0).round(2).tolist(), strict=True))


def summary(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and spread of each variant over its seeds."""
    figures: dict[str, Any] = {}
    for name in VARIANTS:
        own = [r for r in rows.values() if r["variant"] == name]
        for rouge in ROUGES if own else ():
            values = [r[rouge] for r in own]
            spread = f" (sd {statistics.stdev(values):.2f})" if len(values) > 1 else ""
            figures[f"{name} {rouge}"] = f"{statistics.mean(values):.2f}{spread}, {len(values)} seeds"
    return figures


def write(path: Path, rows: dict[str, dict[str, Any]]) -> None:
    published = {f"{name} rouge1, published, BART large": value for name, value in PUBLISHED.items()}
    content = summary(rows) | published | described("ecl_ablations") | {"rows": rows}
    write_whole(path, content)


def main(
    data: Annotated[Path, typer.Option(help="folder with questions/")],
    result: Annotated[Path, typer.Option("--json", help="results are added to this file")],
    start: Annotated[
        Path | None, typer.Option(help="folder of a run that ended with its first stage")
    ] = None,
    backbone: str = "mini",
    seeds: Annotated[int, typer.Option(help="1 to this one")] = 3,
    pretraining: Annotated[int, typer.Option(help="epochs of the first stage, without --start")] = 10,
    epochs: int = 12,
    negatives: int = 8,
    pretraining_lr: float = 4e-4,
    lr: float = 2e-4,
    told: float = 0.8,
    limit: Annotated[int, typer.Option(help="pairs of each corpus at most; 0: all")] = 0,
    questions: Annotated[int, typer.Option(help="of the test part at most; 0: all")] = 0,
    precision: Precision = "auto",
) -> None:
    rows: dict[str, dict[str, Any]] = json.loads(result.read_bytes())["rows"] if result.exists() else {}
    wanted = [(s, n) for s in range(1, seeds + 1) for n in VARIANTS if f"{n} seed {s}" not in rows]
    if wanted:
        tested = read_meqsum(data, "test")[: questions or None]
        recogniser = medical_entities.recogniser(NerModel.load(bundled_tagger()), data / "stanza")
        corpora = read(data, held_out=100, seed=SPLIT, limit=limit)
        sentences = patient_sentences(data) if told and not start else []
        material = material_of(corpora, recogniser, sentences=sentences)
        # As in the paper: nothing is replayed, the right summary is not in the denominator.
        common = Settings(
            backbone=backbone,
            pretraining_lr=pretraining_lr,
            lr=lr,
            message_share=told,
            negatives=negatives,
            positive=False,
            replay=0,
            precision=resolved(precision),
        )
        first = replace(common, seed=SPLIT, pretraining=pretraining, epochs=0)
        network = network_of(first, corpora)
        trainee = SummarizerTrainee(network, first, material)
        if start:
            trainee.start_from(start)
        else:
            fit(network, first, corpora, material)
        first_weights = trainee.weights()
    for seed, name in wanted:
        console.print(f"{name}, seed {seed}")
        trainee.load_weights(first_weights)
        simple, hard = VARIANTS[name]
        settings = replace(common, pretraining=0, epochs=epochs, simple=simple, hard=hard, seed=seed)
        valid = fit(network, settings, corpora, material)
        found: dict[str, Any] = {"variant": name, "seed": seed, "validation_rouge1": valid}
        found |= measured(network, tested, Search(beams=1))
        found["settings"] = asdict(settings)
        rows[f"{name} seed {seed}"] = found
        write(result, rows)
    console.print(summary(rows))


if __name__ == "__main__":
    typer.run(main)
