"""How many sentences per second does the relation stage process on one core, and where is the time spent?

The sentences, with and without events, come from the corpus' stream in its order. Each release runs in the
number format that a worker would choose; the rounds of the releases alternate, because the machine is shared.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import faiss
import orjson
import torch
import typer
from rich.console import Console

from benchmarks.machine import provenance
from models.releases.loading import load
from models.releases.store import bundled, open_release
from training.common.program_help import run_program

console = Console()
BATCH = 64


class Clock:
    """Measures the seconds spent in some methods; nested calls count once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False

    def around(self, owner: Any, name: str) -> None:
        """Replaces a method of one object by one that also measures its time."""
        method: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            if self._inside:
                return method(*arguments, **named)
            self._inside, started = True, time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                self._inside = False
                self.seconds += time.perf_counter() - started

        setattr(owner, name, timed)


class Timed:
    """A loaded release with timers on its encoder, including word pieces and the sentence head, and on its
    neighbour search.
    """

    def __init__(self, path: Path) -> None:
        release = open_release(path)
        loaded = load(release)
        self.version, self.model = release.version, loaded.model
        model: Any = loaded.model
        spaces = model.spaces
        self.encoder, self.search = Clock(), Clock()
        self.encoder.around(spaces, "encode")
        if spaces.upper is not None:
            self.encoder.around(spaces.upper, "states_above")
        if model.sentence_head is not None:
            self.encoder.around(model.sentence_head, "probabilities")
        for index in (model._word_index, model._pair_index):
            self.search.around(index, "search")
        self.format = str(spaces.encoder.model.dtype).removeprefix("torch.")
        self.rates: list[float] = []
        self.seconds = 0.0

    def round(self, texts: Sequence[str]) -> None:
        """Predicts all texts once and records the speed."""
        started = time.perf_counter()
        for start in range(0, len(texts), BATCH):
            self.model.predict(texts[start : start + BATCH])
        seconds = time.perf_counter() - started
        self.rates.append(len(texts) / seconds)
        self.seconds += seconds

    def figures(self) -> dict[str, Any]:
        return {
            "release": self.version,
            "format": self.format,
            "sentences_per_second": round(statistics.median(self.rates), 1),
            "encoder_share": round(self.encoder.seconds / self.seconds, 3),
            "search_share": round(self.search.seconds / self.seconds, 3),
        }


def main(
    data: Annotated[Path, typer.Option(help="folder with streams/sentences.jsonl")],
    before: Annotated[Path | None, typer.Option(help="a release; by default the bundled one")] = None,
    after: Annotated[Path | None, typer.Option(help="another release to compare with")] = None,
    texts: Annotated[int, typer.Option(help="number of sentences, evenly spaced in the stream")] = 1024,
    rounds: Annotated[int, typer.Option(help="number of rounds")] = 3,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    lines = (data / "streams/sentences.jsonl").read_bytes().splitlines()
    chosen = [orjson.loads(line)["text"] for line in lines[:: max(1, len(lines) // texts)][:texts]]
    paths = {"before": before or bundled("relation")} | ({"after": after} if after else {})
    releases = {name: Timed(path) for name, path in paths.items()}
    for release in releases.values():
        release.model.predict(chosen[:BATCH])
        release.encoder.seconds = release.search.seconds = 0.0
    for _ in range(rounds):
        for release in releases.values():
            release.round(chosen)
    figures: dict[str, Any] = {"texts": len(chosen), "batch": BATCH, "threads": 1}
    for name, release in releases.items():
        figures |= {f"{name}_{key}": value for key, value in release.figures().items()}
    if after:
        rates = (figures[f"{name}_sentences_per_second"] for name in ("after", "before"))
        figures["after_to_before"] = round(next(rates) / next(rates), 3)
    figures |= provenance("relation")
    console.print_json(json.dumps(figures))
    if result is not None:
        result.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
