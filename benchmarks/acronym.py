"""How many sentences a second does the acronym stage take on one core, and how much of that is the encoder?

Two releases take turns on the same sentences in batches of 64, as the stage hands them over: distances by the
base alone over the same dictionary (what a release is that nothing was trained for), and the release itself.
Speeds are medians of the rounds; long forms that a model remembers from batch to batch are remembered from
the round before the first.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import described

BATCH = 64
ROUNDS = 5


class Clock:
    """Seconds spent in an encoder's layers."""

    def __init__(self, module: Any) -> None:
        self.seconds = 0.0
        self._started = 0.0
        module.register_forward_pre_hook(self._begin)
        module.register_forward_hook(self._end)

    def _begin(self, *_: Any) -> None:
        self._started = time.perf_counter()

    def _end(self, *_: Any) -> None:
        self.seconds += time.perf_counter() - self._started


def texts(data: Path | None, limit: int) -> list[str]:
    """Sentences of the stream, or of the samples where no folder is given."""
    from streams.cli.demo import samples  # noqa: PLC0415

    path = data / "streams/sentences.jsonl" if data else samples()["sentences"]
    found = [orjson.loads(line)["text"] for line in path.read_bytes().splitlines()]
    step = max(1, len(found) // limit) if limit else 1
    return found[::step][:limit] if limit else found


def timed(predict: Callable[[Sequence[str]], Any], sentences: Sequence[str]) -> float:
    """Seconds for all sentences."""
    started = time.perf_counter()
    for start in range(0, len(sentences), BATCH):
        predict(sentences[start : start + BATCH])
    return time.perf_counter() - started


def measure(models: dict[str, tuple[Any, Clock]], sentences: Sequence[str]) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in models}
    shares: dict[str, list[float]] = {name: [] for name in models}
    for model, _ in models.values():
        timed(model.predict, sentences[:BATCH])
    for _ in range(ROUNDS):
        for name, (model, clock) in models.items():
            before = clock.seconds
            taken = timed(model.predict, sentences)
            seconds[name].append(taken)
            shares[name].append((clock.seconds - before) / taken)
    figures: dict[str, Any] = {}
    for name in models:
        figures[f"{name}_sentences_per_second"] = round(len(sentences) / statistics.median(seconds[name]), 1)
        figures[f"{name}_encoder_share"] = round(statistics.median(shares[name]), 3)
    return figures


def main(
    release: Annotated[Path, typer.Option(help="folder of an acronym release")],
    data: Annotated[Path | None, typer.Option(help="folder with streams/; else the samples")] = None,
    limit: Annotated[int, typer.Option(help="sentences, evenly spaced; 0: all")] = 2000,
    dtype: Annotated[str, typer.Option(help="number format of both")] = "float32",
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    import torch  # noqa: PLC0415

    from models.acronym.model import AcronymModel  # noqa: PLC0415
    from models.acronym.scorers import TrainedScorer, ZeroShotScorer  # noqa: PLC0415
    from models.encoder.model import Encoder  # noqa: PLC0415
    from models.releases.store import open_release  # noqa: PLC0415

    torch.set_num_threads(1)
    opened = open_release(release)
    number = getattr(torch, dtype)
    base = Encoder.load(
        opened.manifest.base, dtype=number, max_pieces=opened.manifest.configuration["max_pieces"]
    )
    trained = AcronymModel.load(opened, dtype=number)
    scorer = trained.scorer
    encoder = scorer.network.encoder if isinstance(scorer, TrainedScorer) else base
    models = {
        "zero_shot": (AcronymModel(base, trained.dictionary, ZeroShotScorer(base)), Clock(base.model)),
        "release": (trained, Clock(encoder.model)),
    }
    sentences = texts(data, limit)
    figures: dict[str, Any] = {
        "release": opened.version,
        "sentences": len(sentences),
        "expansions": sum(len(found) for found in trained.predict(sentences)),
        "dtype": dtype,
    }
    figures |= measure(models, sentences)
    figures["release_to_zero_shot"] = round(
        figures["release_sentences_per_second"] / figures["zero_shot_sentences_per_second"], 3
    )
    figures |= described("acronym")
    print(json.dumps(figures, indent=2))
    if result is not None:
        result.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
