"""How the cost grows with the size of the terminology and with the length of texts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from benchmarks.speed.setup import BATCH, Setup
from benchmarks.speed.timing import Timed, by_turns, side_by_side
from models.normalization.packed_vectors import PackedIndex, PackedVectors
from streams.agents import ner, normalization
from streams.inference import set_threads
from streams.records import Report

#: Names that are searched for one mention, as in the bundled release.
NEAREST = 60
#: Vectors that are drawn at a time.
PART = 50_000


def terminology(setup: Setup) -> dict[str, Any]:
    """The search of a batch of mentions among several numbers of names, random unit vectors in 8 bits, on one
    thread.
    """
    set_threads(1)
    random = torch.Generator().manual_seed(1)
    queries = torch.randn(BATCH, 384, generator=random).numpy()
    rows = {}
    for size in setup.amount.terms:
        parts = [
            PackedVectors.pack(normalize(torch.randn(min(PART, size - start), 384, generator=random)))
            for start in range(0, size, PART)
        ]
        index = PackedIndex(parts)
        forms = {str(n): partial(index.search, queries[:n], NEAREST) for n in (1, BATCH)}
        times = by_turns(forms, setup.amount.repeats)
        rows[f"{size:,} names"] = {
            "ms_a_mention_alone": _milliseconds(times["1"], 1),
            "ms_a_mention_in_a_batch": _milliseconds(times[str(BATCH)], BATCH),
            "megabytes": round(sum(p.numbers.nbytes + p.scales.nbytes for p in parts) / 1e6, 1),
        }
    return {"what": "processor time", "mentions_of_a_batch": BATCH, "nearest": NEAREST, "rows": rows}


def length(setup: Setup) -> dict[str, Any]:
    """Posts of several lengths in characters, joined from the sample posts, through both of their stages."""
    words = " ".join(report.text for report in setup.before["posts", "ner"]).split()
    rng = np.random.default_rng(3)
    rows = {}
    for size in setup.amount.characters:
        n = max(1, min(BATCH, 64_000 // size))
        own = [" ".join(rng.choice(words, size // 4))[:size] for _ in range(n)]
        reports = [Report(id=f"l{i}", text=text) for i, text in enumerate(own)]
        work = partial(side_by_side, [partial(_coded, setup, reports)], 1)
        time = by_turns({"posts": work}, setup.amount.repeats)["posts"]
        rows[f"{size:,} characters"] = {
            "posts": n,
            "cpu_ms_a_post": _milliseconds(time, n),
            "cpu_ms_a_1000_characters": round(1e6 * time.cpu / n / size, 2),
        }
    return {"what": "stages ner and normalization, one thread, words of the posts at random", "rows": rows}


def _coded(setup: Setup, reports: list[Report]) -> None:
    tagged = ner.predict(setup.models["ner"].model, reports)
    normalization.predict(setup.models["normalization"].model, tagged)


def _milliseconds(time: Timed, n: int) -> float:
    return round(1000 * time.cpu / n, 2)
