"""What does each part of CONORM-NER's training contribute, and what does training on two corpora cost?

The variants are trained alike except for what their names state, on fold 1 of the ADE corpus (one also on
PsyTAR). Each is written to the file before the next one begins: a run that was stopped resumes with the
missing variants.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import provenance, write_atomically
from benchmarks.ner.folds import fold_row
from training.common.precision import resolved
from training.common.program_help import run_program
from training.ner.settings import Settings

VARIANTS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "without the sub-word flag": {"flag": False},
    "BIO instead of BIOX": {"biox": False},
    "one phase": {"phases": 1},
    "without repair": {"repair": False},
    "low-rank adapter, rank 16": {"rank": 16, "lr": 5e-4},
    "low-rank adapter, PsyTAR too": {"rank": 16, "lr": 5e-4, "corpora": "both"},
}


def row_of(settings: Settings, data: Path) -> dict[str, Any]:
    """Trains with these settings; scores on the test part of the fold, and costs."""
    fold = fold_row(settings, data)
    return {
        **{name: fold["scores"][name] for name in ("strict_micro_f1", "strict_macro_f1")},
        "dictionary_micro_f1": fold["baselines"]["strict_micro_f1"],
        "records": fold["records"],
        "seconds": fold["seconds"],
        "megabytes": fold["megabytes"],
    }


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/ and psytar/")],
    result: Annotated[Path, typer.Option("--json", help="result file; a run resumes where it ends")],
    epochs: Annotated[int, typer.Option(help="epochs of both phases together")] = 8,
    lr: Annotated[float, typer.Option(help="learning rate of phase 2")] = 3e-4,
    seed: Annotated[int, typer.Option(help="seed of weights and order")] = 42,
) -> None:
    common = Settings(
        corpora="ade",
        epochs=epochs,
        rank=0,
        lr=lr,
        seed=seed,
        batch=32,
        decode="paper",
        precision=resolved("auto"),
    )
    plain = asdict(common)
    rows: dict[str, Any] = {}
    if result.exists():
        stored = json.loads(result.read_bytes())
        if stored["settings"] != plain:
            raise typer.BadParameter(f"{result} has variants with other settings: {stored['settings']}")
        rows = stored["rows"]
    for name, changes in VARIANTS.items():
        if name in rows:
            continue
        rows[name] = row_of(replace(common, **changes), data)
        content = {
            "data": "ADE corpus fold 1 test, exact boundaries and label, F1 over DRUG, ADE",
            "rows": rows,
            "settings": plain,
            **provenance("ner.ablations"),
        }
        write_atomically(result, content)
        print(name, rows[name], flush=True)


if __name__ == "__main__":
    run_program(main)
