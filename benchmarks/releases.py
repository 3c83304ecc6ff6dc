"""How large is each bundled release, how long was it trained, and how fast is it on its own kind of text?

Each round measures all releases in turn, in batches of the stage's size; speeds are medians over the rounds.
They are also given as ratios to the base encoder alone, over the same texts in the same rounds.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.machine import print_and_write, provenance
from models.encoder.base_files import MINI
from models.encoder.model import Encoder
from models.releases.store import bundled, open_release
from models.types import CODED_LABELS, TASKS, Query
from streams.cli.demo.run import samples
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.program_help import run_program

BATCH = 64
ROUNDS = 5
KIND = {
    "ner": "posts",
    "normalization": "posts",
    "acronym": "sentences",
    "relation": "sentences",
    "summarization": "questions",
}
DEFINITIONS = {
    "megabytes": "files of the release, without its base",
    "training_seconds": "wall time of training and validation on the machine that trained it; null: not kept",
    "texts_per_second": "median over the rounds; normalization is given the tagger's effects",
    "of_bare_encoder": "that speed over the speed of the untrained base embedding the same texts whole",
}


def inputs_of(task: str, texts: Sequence[str], tagger: Any) -> list[Any]:
    """The inputs that the stage gives to its model for these texts."""
    if task != "normalization":
        return list(texts)
    tagged = zip(texts, tagger.predict(texts), strict=True)
    return [
        Query(text, m.start, m.end, m.text)
        for text, mentions in tagged
        for m in mentions
        if m.label in CODED_LABELS
    ]


def seconds_for(predict: Callable[[list[Any]], Any], inputs: Sequence[Any]) -> float:
    """Seconds for all inputs, in batches."""
    started = time.perf_counter()
    for start in range(0, len(inputs), BATCH):
        predict(list(inputs[start : start + BATCH]))
    return time.perf_counter() - started


def main(
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
    threads: Annotated[int, typer.Option(help="threads of torch")] = 2,
) -> None:
    torch.set_num_threads(threads)
    settings = Settings()
    models = {task: load_release(task, None, settings) for task in TASKS}
    texts = {
        kind: [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
        for kind, path in samples().items()
    }
    base = Encoder.load(MINI)
    inputs = {task: inputs_of(task, texts[KIND[task]], models["ner"].model) for task in models}
    release_seconds: dict[str, list[float]] = {task: [] for task in models}
    base_seconds: dict[str, list[float]] = {task: [] for task in models}
    for _ in range(ROUNDS):
        for task, loaded in models.items():
            release_seconds[task].append(seconds_for(loaded.model.predict, inputs[task]))
            base_seconds[task].append(seconds_for(base.embed, texts[KIND[task]]))
    rows = {}
    for task, loaded in models.items():
        manifest = open_release(bundled(task)).manifest
        n, seconds = len(texts[KIND[task]]), statistics.median(release_seconds[task])
        rows[task] = {
            "release": loaded.version,
            "megabytes": round(sum(f.size for f in manifest.files.values()) / 1e6, 1),
            "training_seconds": manifest.configuration.get("training_seconds"),
            "texts": n,
            "texts_per_second": round(n / seconds, 1),
            "of_bare_encoder": round(statistics.median(base_seconds[task]) / seconds, 2),
        }
    print_and_write({"definitions": DEFINITIONS, "rows": rows, **provenance("releases")}, result)


if __name__ == "__main__":
    run_program(main)
