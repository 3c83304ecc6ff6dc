"""How many questions per second does a summarization release process, with beam search and greedily?

The same questions in batches of 64, on two threads; medians of several rounds. The release is measured as it
is served, with writer, guard and extractive fallback. ROUGE is computed over the whole test part, because its
first questions are easier than the others.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.machine import print_and_write, provenance
from models.releases.loading import load
from models.releases.store import open_release
from models.summarization.decoding.generation import PointerWriter
from models.summarization.decoding.hub_generation import HubWriter
from models.summarization.model import SummarizationModel
from models.summarization.reranker import RankedWriter
from training.common.program_help import run_program
from training.evaluation.summarization.measure import read, summary_counts

BATCH = 64


def set_beams(model: SummarizationModel, beams: int) -> bool:
    """Sets the number of beams; returns False if the release has no decoder."""
    writer = model.writer.pointer if isinstance(model.writer, RankedWriter) else model.writer
    if not isinstance(writer, PointerWriter | HubWriter):
        return False
    writer.settings = replace(writer.settings, beams=beams)
    return True


def speed(model: SummarizationModel, texts: list[str], rounds: int) -> float:
    """Questions per second, as the median over the rounds."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        for start in range(0, len(texts), BATCH):
            model.predict(texts[start : start + BATCH])
        seconds.append(time.perf_counter() - started)
    return len(texts) / statistics.median(seconds)


def main(
    data: Annotated[Path, typer.Option(help="folder with questions/")],
    release: Annotated[Path, typer.Option(help="folder of the release")],
    questions: Annotated[
        int, typer.Option(help="number of timed questions, from the test part of MeQSum")
    ] = 128,
    rounds: Annotated[int, typer.Option(help="number of rounds")] = 3,
    threads: Annotated[int, typer.Option(help="threads of torch")] = 2,
    dtype: Annotated[str, typer.Option(help="number format: auto, float32 or bfloat16")] = "auto",
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    torch.set_num_threads(threads)
    loaded = load(open_release(release), dtype=dtype)
    model: Any = loaded.model
    records = read(data, "meqsum_test", 0).records
    texts = [q.text for q in records[:questions]]
    figures: dict[str, Any] = {"release": loaded.version, "questions": len(texts), "threads": threads}
    for name, beams in (("beam_4", 4), ("greedy", 1)):
        if model.writer is not None and set_beams(model, beams):
            answers = [s.text for s in model.predict([q.text for q in records])]
            figures[f"{name}_rouge1"] = round(
                float(summary_counts(answers, [q.summary for q in records])[:, 0].mean()), 2
            )
            figures[f"{name}_questions_per_second"] = round(speed(model, texts, rounds), 2)
    figures["extractive_questions_per_second"] = round(
        speed(SummarizationModel(model.encoder), texts, rounds), 2
    )
    print_and_write(figures | provenance("summarization"), result)


if __name__ == "__main__":
    run_program(main)
