"""How large is each bundled release, how long was it trained, and how fast is it on its own kind of text?

Speeds are medians over rounds in which all releases take their turn, in batches of the stage's size, and as
ratios to the bare base encoder over the same texts in the same rounds.
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

from benchmarks.machine import described
from models.encoder.model import Encoder
from models.encoder.weights import MINI
from models.releases.loading import load
from models.releases.store import bundled, open_release
from models.types import CODED_LABELS, TASKS, Query
from streams.cli.demo import samples
from streams.releases.opening import load_release
from streams.settings import Settings

BATCH = 64
ROUNDS = 5
KIND = {
    "ner": "posts",
    "normalization": "posts",
    "acronym": "sentences",
    "relation": "sentences",
    "summarization": "questions",
    "idiom": "posts",
}
DEFINITIONS = {
    "megabytes": "files of the release, without its base",
    "training_seconds": "wall time of training and validation on the machine that trained it; null: not kept",
    "texts_per_second": "median over the rounds; normalization is given the tagger's effects",
    "of_bare_encoder": "that speed over the speed of the untrained base embedding the same texts whole",
}


def inputs_of(task: str, texts: Sequence[str], tagger: Any) -> list[Any]:
    """What the stage hands to its model for these texts."""
    if task != "normalization":
        return list(texts)
    found = zip(texts, tagger.predict(texts), strict=True)
    return [
        Query(text, m.start, m.end, m.text)
        for text, mentions in found
        for m in mentions
        if m.label in CODED_LABELS
    ]


def seconds_of(work: Callable[[list[Any]], Any], inputs: Sequence[Any]) -> float:
    started = time.perf_counter()
    for start in range(0, len(inputs), BATCH):
        work(list(inputs[start : start + BATCH]))
    return time.perf_counter() - started


def main(
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
    threads: int = 2,
) -> None:
    torch.set_num_threads(threads)
    settings = Settings()
    loaded = {task: load_release(task, None, settings) for task in TASKS}
    # No stage of its own: sentence vectors, which a normalization may begin with.
    loaded["idiom"] = load(open_release(bundled("idiom")))
    texts = {
        kind: [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
        for kind, path in samples().items()
    }
    bare = Encoder.load(MINI)
    inputs = {task: inputs_of(task, texts[KIND[task]], loaded["ner"].model) for task in loaded}
    ours: dict[str, list[float]] = {task: [] for task in loaded}
    base: dict[str, list[float]] = {task: [] for task in loaded}
    for _ in range(ROUNDS):
        for task, one in loaded.items():
            ours[task].append(seconds_of(one.model.predict, inputs[task]))
            base[task].append(seconds_of(bare.embed, texts[KIND[task]]))
    rows = {}
    for task, one in loaded.items():
        manifest = open_release(bundled(task)).manifest
        n, seconds = len(texts[KIND[task]]), statistics.median(ours[task])
        rows[task] = {
            "release": one.version,
            "megabytes": round(sum(f.size for f in manifest.files.values()) / 1e6, 1),
            "training_seconds": manifest.configuration.get("training_seconds"),
            "texts": n,
            "texts_per_second": round(n / seconds, 1),
            "of_bare_encoder": round(statistics.median(base[task]) / seconds, 2),
        }
    row = {"definitions": DEFINITIONS, "rows": rows, **described("releases")}
    print(json.dumps(row, indent=2))
    if result is not None:
        result.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
