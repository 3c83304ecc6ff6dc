"""The speed of the stage `ner` relative to transformers' own pipeline with the same weights.

The encoder of the bundled release becomes a BertForTokenClassification with as many labels, with a thread of
torch for each processor; in float32, as transformers has it by default, and in the format of the stage. The
stage does more: it reads sentences together, decodes tags, adds drugs from a lexicon and a status to effects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.speed.setup import BATCH, Setup
from benchmarks.speed.timing import by_turns, chunks, side_by_side
from models.encoder.model import encoder_of
from models.releases.store import bundled, open_release
from streams.agents import ner
from streams.inference import set_threads

TOGETHER = 32


def naive(setup: Setup) -> dict[str, Any]:
    """One text at a time, 32 together, and the stage, each by the same number of processors."""
    reports = setup.before["posts", "ner"][:BATCH]
    texts = [report.text for report in reports]
    own: Any = setup.models["ner"].model
    formats = dict.fromkeys(["float32", setup.number_format])
    batches = chunks(reports, -(-len(reports) // setup.workers))
    calls = [partial(ner.predict, own, batch) for batch in batches]
    forms: dict[str, Callable[[], Any]] = {"stage ner": partial(side_by_side, calls, setup.workers)}
    for name in formats:
        pipe = _pipeline(getattr(torch, name), len(own.tags))
        for size in (1, TOGETHER):
            forms[f"transformers.pipeline, {name}, batch {size}"] = partial(
                _run, pipe, texts, size, setup.workers
            )
    times = by_turns(forms, setup.amount.repeats)
    stage = times["stage ner"]
    rows = {
        name: {
            "posts_per_second": round(len(texts) / t.wall, 1),
            "cpu_ms_a_post": round(1000 * t.cpu / len(texts), 2),
            "stage_is_faster": round(t.wall / stage.wall, 2),
            "by_cpu": round(t.cpu / stage.cpu, 2),
        }
        for name, t in times.items()
    }
    return {"posts": len(texts), "number_format_of_the_stage": setup.number_format, "rows": rows}


def _pipeline(dtype: torch.dtype, labels: int) -> Any:
    from transformers import BertForTokenClassification, pipeline  # noqa: PLC0415  seconds to import

    encoder = encoder_of(open_release(bundled("ner")), packed=False)
    configuration = encoder.model.config
    configuration.num_labels = labels
    kind: Any = BertForTokenClassification
    model = kind(configuration)
    model.bert = encoder.model
    model.bert.pooler = None
    return pipeline(
        "token-classification", model=model.eval().to(dtype), tokenizer=encoder.tokenizer, device="cpu"
    )


def _run(pipe: Any, texts: list[str], size: int, threads: int) -> None:
    set_threads(threads)
    for text in texts if size == 1 else [texts]:
        pipe(text, batch_size=size)
