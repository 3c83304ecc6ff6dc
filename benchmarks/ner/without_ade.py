"""What does the tagger lose that is trained without the ADE corpus, whose licence is not stated?

Two taggers are trained from the base by the same settings, shorter than the bundled release: one on the ADE
corpus, with sentences without an event, on PsyTAR and the teaching corpus, the other on the last two alone.
Each is written to the file before the next one begins: a run that was stopped resumes with the missing one. A
file with other settings is refused.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.machine import provenance, write_atomically
from benchmarks.ner.teaching_curve import described, rows, scores, served, stored
from training.common.precision import resolved
from training.common.program_help import run_program
from training.ner.assemble import train
from training.ner.data import read
from training.ner.settings import Settings

console = Console()
NEGATIVES = 3000


def point(settings: Settings, data: Path) -> dict[str, Any]:
    """One tagger: its texts, and all scores."""
    corpora = read(data, settings)
    trainee, loop = train(corpora, settings, None)
    texts = sum(len(c.train) for c in corpora.values())
    found = described(scores(served(trainee), data, settings.split))
    return {"texts": texts, "seconds": round(loop.seconds)} | found


def main(
    data: Annotated[Path, typer.Option(help="folder with ade/, psytar/ and tweets/")],
    result: Annotated[Path, typer.Option("--json", help="result file; a run resumes where it ends")],
    epochs: Annotated[int, typer.Option(min=1, help="epochs of each tagger")] = 3,
    lr: Annotated[float, typer.Option(help="learning rate")] = 3e-4,
    seed: Annotated[int, typer.Option(help="seed of weights and order")] = 42,
) -> None:
    settings = Settings(
        rank=0, eight_bit=True, phases=1, epochs=epochs, lr=lr, batch=32, average=2, keep="last", seed=seed,
        teaching=1.0, candidates=True, event_head=True, status_head=True, window=96, joined=0.2,
        precision=resolved("auto"),
    )  # fmt: skip
    runs = {
        "with ADE": replace(settings, corpora="both", negatives=NEGATIVES),
        "without ADE": replace(settings, corpora="psytar"),
    }
    plain = {k: v for k, v in asdict(settings).items() if k not in ("corpora", "negatives")}
    done = stored(result, plain, "taggers")
    for name, own in runs.items():
        if name not in done:
            done[name] = point(own, data)
            console.print(f"{name}: {done[name]['scores']}")
            content = {"settings": plain, "rows": rows(done), "taggers": done}
            write_atomically(result, provenance("ner.without_ade") | content)


if __name__ == "__main__":
    run_program(main)
