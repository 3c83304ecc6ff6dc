"""How many sentences per second does the acronym stage process on one core, and what is the encoder's share?

Two models alternate on the same sentences in batches of 64, the batch size of the stage: an untrained
baseline, which uses distances of the base model over the same dictionary, and the release itself. Speeds are
medians over the rounds. A warm-up batch runs before the first round; what a model caches between batches
stays cached.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from training.common.program_help import run_program

BATCH = 64
ROUNDS = 5


class Clock:
    """Measures the seconds spent in an encoder."""

    def __init__(self, model: Any) -> None:
        """`model`: packed; its runs are measured from now on."""
        self.seconds = 0.0
        self._run = model.run
        model.run = self._timed

    def _timed(self, *args: Any) -> Iterator[Any]:
        groups = self._run(*args)
        while True:
            started = time.perf_counter()
            group = next(groups, None)
            self.seconds += time.perf_counter() - started
            if group is None:
                return
            yield group


def texts(data: Path | None, limit: int) -> list[str]:
    """Sentences of the stream, evenly spaced; of the samples where no folder is given."""
    from streams.cli.demo.run import samples  # noqa: PLC0415

    path = data / "streams/sentences.jsonl" if data else samples()["sentences"]
    sentences = [orjson.loads(line)["text"] for line in path.read_bytes().splitlines()]
    step = max(1, len(sentences) // limit) if limit else 1
    return sentences[::step][:limit] if limit else sentences


def seconds_for(predict: Callable[[Sequence[str]], Any], sentences: Sequence[str]) -> float:
    """Seconds for all sentences."""
    started = time.perf_counter()
    for start in range(0, len(sentences), BATCH):
        predict(sentences[start : start + BATCH])
    return time.perf_counter() - started


def measure(models: dict[str, tuple[Any, Clock]], sentences: Sequence[str]) -> dict[str, Any]:
    """Speed of each model, and the share of the time that its encoder takes."""
    seconds: dict[str, list[float]] = {name: [] for name in models}
    shares: dict[str, list[float]] = {name: [] for name in models}
    for model, _ in models.values():
        seconds_for(model.predict, sentences[:BATCH])
    for _ in range(ROUNDS):
        for name, (model, clock) in models.items():
            before = clock.seconds
            elapsed = seconds_for(model.predict, sentences)
            seconds[name].append(elapsed)
            shares[name].append((clock.seconds - before) / elapsed)
    figures: dict[str, Any] = {}
    for name in models:
        figures[f"{name}_sentences_per_second"] = round(len(sentences) / statistics.median(seconds[name]), 1)
        figures[f"{name}_encoder_share"] = round(statistics.median(shares[name]), 3)
    return figures


def load_models(release: Any, dtype: str) -> dict[str, tuple[Any, Clock]]:
    """The untrained baseline and the release, each with a clock on its encoder."""
    import torch  # noqa: PLC0415

    from models.acronym.model import AcronymModel  # noqa: PLC0415
    from models.acronym.scorers import TrainedScorer, ZeroShotScorer  # noqa: PLC0415
    from models.encoder.model import Encoder  # noqa: PLC0415

    number_format = getattr(torch, dtype)
    max_pieces = release.manifest.configuration["max_pieces"]
    base = Encoder.for_inference(release.manifest.base, dtype=number_format, max_pieces=max_pieces)
    trained = AcronymModel.load(release, dtype=number_format)
    scorer = trained.scorer
    encoder = scorer.network.encoder if isinstance(scorer, TrainedScorer) else base
    return {
        "zero_shot": (AcronymModel(base, trained.dictionary, ZeroShotScorer(base)), Clock(base.model)),
        "release": (trained, Clock(encoder.model)),
    }


def main(
    release: Annotated[Path, typer.Option(help="directory of an acronym release")],
    data: Annotated[
        Path | None, typer.Option(help="folder with streams/; by default the samples are used")
    ] = None,
    limit: Annotated[int, typer.Option(help="maximum number of sentences, evenly spaced; 0: all")] = 2000,
    dtype: Annotated[str, typer.Option(help="number format of both models")] = "float32",
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    import torch  # noqa: PLC0415

    from models.releases.store import open_release  # noqa: PLC0415

    torch.set_num_threads(1)
    opened = open_release(release)
    models = load_models(opened, dtype)
    sentences = texts(data, limit)
    figures: dict[str, Any] = {
        "release": opened.version,
        "sentences": len(sentences),
        "expansions": sum(len(expansions) for expansions in models["release"][0].predict(sentences)),
        "dtype": dtype,
    }
    figures |= measure(models, sentences)
    figures["release_to_zero_shot"] = round(
        figures["release_sentences_per_second"] / figures["zero_shot_sentences_per_second"], 3
    )
    print_and_write(figures | provenance("acronym"), result)


if __name__ == "__main__":
    run_program(main)
