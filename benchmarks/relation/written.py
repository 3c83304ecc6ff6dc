"""What do releases find in the held-out clinical sentences of the teaching corpus?

The sentences are synthetic and other than case reports: none is trained on, but a release that learned from
the teaching corpus knows sentences that were written like them. The scores are those of `pvstream evaluate
relation`, with its baselines.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from models.scores import bootstrap
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program
from training.evaluation.relation import PRIMARY, Corpus, measure
from training.relation.written import held_out

#: What is held out, by the author batches.
PARTS = {
    "sentences": ("clinical_4",),
    "telegraphic notes": ("clinical_13",),
    "notes of another writer": ("clinical_19",),
    "notes of a third writer": ("clinical_32",),
}


def figures(model: Any, data: Corpus) -> dict[str, dict[str, Any]]:
    """Score to value, interval and baseline; without the one in the proportion of the ADE corpus."""
    result = measure(model, data)
    measures = [m for m in result.measures if m.name != PRIMARY]
    intervals = bootstrap(result.counts, measures)
    return {
        m.name: {
            "value": round(m.of(result.counts), 4),
            "95 % interval": " to ".join(f"{v:.4f}" for v in intervals[m.name]),
            "baseline": round(m.of(result.baseline), 4),
            "what is counted": m.definition,
            "what the baseline is": result.baseline_definitions[m.name],
        }
        for m in measures
    }


def main(
    release: Annotated[
        list[Path] | None, typer.Option(help="a relation release, repeatable; by default the bundled one")
    ] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    parts, rows = {name: held_out(batches) for name, batches in PARTS.items()}, dict[str, dict[str, Any]]()
    for path in release or (None,):
        loaded = load_release("relation", path, Settings(dtype="float32"))
        for part, data in parts.items():
            own = figures(loaded.model, data)
            rows |= {f"{part}, {loaded.version}, {name}": row for name, row in own.items()}
    found: dict[str, Any] = {"data": "teaching corpus, held-out clinical sentences"}
    for part, data in parts.items():
        found |= {f"{part} with an effect": len(data.test), f"{part} without": len(data.negatives)}
    print_and_write(found | {"rows": rows} | provenance("relation.written"), result)


if __name__ == "__main__":
    run_program(main)
