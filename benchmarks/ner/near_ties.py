"""How many texts have other mentions where the encoder computes in 16 bits, and what does it cost to read
sentences again in 32 whose tags are nearly tied?

A sentence is read again if its tags are better than any others by less than a limit; `UNCLEAR` in
models/ner/model.py is the one in use, and with 0 none is read again. A text differs if a start, an end, a
label or a status of its mentions does. The limits take turns, and their time is that of processors. It says
nothing of the cost where products in 16 bits are not fast.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import typer

from benchmarks.machine import print_and_write, provenance
from models.types import Mention
from streams.releases.opening import load_release
from streams.settings import Settings
from training.common.corpora import read_psytar
from training.common.program_help import run_program

LIMITS = (0.0, 0.02, 0.05, 0.1)
BATCH = 64


def texts_of(data: Path, limit: int) -> dict[str, list[str]]:
    """PsyTAR's test sentences and reviews, at most `limit` of each (0: all)."""
    lines = (data / "streams/posts.jsonl").read_text(encoding="utf-8").splitlines()
    found = {
        "PsyTAR test": [text.text for text in read_psytar(data / "psytar/ner_test.conll")],
        "posts": [json.loads(line)["text"] for line in lines],
    }
    return {name: texts[: limit or None] for name, texts in found.items()}


def answers(model: Any, texts: Sequence[str]) -> tuple[list[list[Mention]], float]:
    """The mentions of each text, and the seconds of processor time."""
    started = time.process_time()
    found = [m for i in range(0, len(texts), BATCH) for m in model.predict(texts[i : i + BATCH])]
    return found, time.process_time() - started


def differing(one: Sequence[Sequence[Mention]], other: Sequence[Sequence[Mention]]) -> int:
    def decisions(mentions: Sequence[Mention]) -> list[Any]:
        return [(m.start, m.end, m.label, m.status) for m in mentions]

    return sum(decisions(a) != decisions(b) for a, b in zip(one, other, strict=True))


def row(models: Mapping[str, Any], texts: Sequence[str], rounds: int) -> dict[str, Any]:
    """Of each limit the texts that differ from those in 32 bits, and the time over that without reading
    again.
    """
    exact, _ = answers(models["float32"], texts)
    seconds: dict[float, list[float]] = {limit: [] for limit in LIMITS}
    figures: dict[str, Any] = {"texts": len(texts)}
    for _ in range(rounds):
        for limit in LIMITS:
            with patch("models.ner.model.UNCLEAR", limit):
                found, took = answers(models["bfloat16"], texts)
            seconds[limit].append(took)
            figures[f"differ_at_{limit}"] = differing(exact, found)
    for limit in LIMITS[1:]:
        ratios = [a / b for a, b in zip(seconds[limit], seconds[0.0], strict=True)]
        figures[f"time_at_{limit}"] = round(statistics.median(ratios), 3)
    return figures


def main(
    data: Annotated[Path, typer.Option(help="folder with psytar/ and streams/")],
    rounds: Annotated[int, typer.Option(min=1, help="turns of the limits")] = 3,
    limit: Annotated[int, typer.Option(help="texts of each kind at most; 0: all")] = 0,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    models = {
        dtype: load_release("ner", None, Settings(dtype=dtype)).model for dtype in ("float32", "bfloat16")
    }
    rows = {name: row(models, texts, rounds) for name, texts in texts_of(data, limit).items()}
    print_and_write(provenance("ner.near_ties") | {"rounds": rounds, "rows": rows}, result)


if __name__ == "__main__":
    run_program(main)
