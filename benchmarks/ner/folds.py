"""How well are drugs and adverse effects recognised in clinical sentences, over the folds of the ADE corpus?

All layers are trained, on the ADE corpus alone, and stored as deltas of 8 bits, as in the bundled release.
Each fold is trained and scored separately and written to the file before the next one begins: a run that was
stopped resumes with the missing folds. A file with other settings is refused.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from benchmarks.folds import summary
from benchmarks.machine import provenance, write_atomically
from training.common.precision import resolved
from training.common.program_help import run_program
from training.ner.release import make
from training.ner.settings import Settings
from training.recipes.stages import Place

console = Console()
#: Means that CLDR's authors and SpERT's publish for these folds; see COMPARABLE.
PUBLISHED = {"CLNER (CharacterBERT), NER macro F1": 0.883, "SpERT (BERT base), NER macro F1": 0.8925}
COMPARABLE = (
    "the published figures count entities of the same folds; here an overlapped entity, which BIO cannot "
    "hold, counts as missed"
)


def fold_row(settings: Settings, data: Path) -> dict[str, Any]:
    """Trains on one fold; scores on its test part, each with its baseline, and costs."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        release = make(settings, Place(data, Path(folder), torch.device("cpu")))
        seconds = time.monotonic() - started
        # A run on PsyTAR too has scores on both corpora.
        scores = [s for s in release.manifest.scores if s.data.startswith("ADE")]
        size = sum(f.size for f in release.manifest.files.values()) / 1e6
    return {
        "scores": {s.name: s.value for s in scores},
        "baselines": {s.name: s.baseline for s in scores},
        "records": scores[0].records,
        "seconds": round(seconds),
        "megabytes": round(size, 1),
        "definitions": {s.name: s.definition for s in scores},
        "baseline_definition": scores[0].baseline_definition,
    }


def stored_folds(file: Path, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The folds in a result file; raises typer.BadParameter if they have other settings."""
    if not file.exists():
        return {}
    stored = json.loads(file.read_bytes())
    if stored["settings"] != settings:
        raise typer.BadParameter(f"{file} has folds with other settings: {stored['settings']}")
    return dict(stored["folds"])


def write_results(file: Path, settings: Mapping[str, Any], folds: dict[str, dict[str, Any]]) -> None:
    common = {k: next(iter(folds.values()))[k] for k in ("definitions", "baseline_definition")}
    rows = {n: {k: v for k, v in row.items() if k not in common} for n, row in folds.items()}
    content = summary(folds) | provenance("ner.folds") | common
    content |= {"published": PUBLISHED, "comparable": COMPARABLE, "settings": settings, "folds": rows}
    write_atomically(file, content)


def main(
    data: Annotated[Path, typer.Option(exists=True, help="folder with ade/")],
    result: Annotated[Path, typer.Option("--json", help="result file; a run resumes where it ends")],
    folds: Annotated[int, typer.Option(min=1, max=10, help="number of folds, from the first")] = 10,
    epochs: Annotated[int, typer.Option(help="epochs of a fold")] = 12,
    average: Annotated[int, typer.Option(help="number of last epochs whose weights are averaged")] = 3,
    lr: Annotated[float, typer.Option(help="learning rate")] = 3e-4,
    batch: Annotated[int, typer.Option(help="sentences of a batch")] = 32,
    seed: Annotated[int, typer.Option(help="seed of weights and order")] = 42,
) -> None:
    settings = Settings(
        corpora="ade", epochs=epochs, average=average, lr=lr, batch=batch, seed=seed,
        precision=resolved("auto"),
    )  # fmt: skip
    plain = {k: v for k, v in asdict(settings).items() if k != "split"}
    done = stored_folds(result, plain)
    for fold in range(1, folds + 1):
        if str(fold) not in done:
            row = fold_row(replace(settings, split=f"ade_fold_{fold}"), data)
            common = {k: row[k] for k in ("definitions", "baseline_definition")}
            done = {n: r | common for n, r in done.items()} | {str(fold): row}
            write_results(result, plain, done)
            console.print(f"fold {fold}: {row['scores']} after {row['seconds']} s")
    console.print(summary(done))


if __name__ == "__main__":
    run_program(main)
