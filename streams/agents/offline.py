"""Posts through the functions of both stages, without topics: for evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.agents import ner, normalization
from streams.records import CodedReport, Report

#: Posts of one call; the models group them further.
BATCH = 64


def code_posts(
    tagger: Any, coder: Any, texts: Sequence[str], drugs: Sequence[str | None]
) -> list[CodedReport]:
    """One coded report for each post, in order. `drugs`: what the source of each states."""
    reports = [
        Report(id=str(i), text=text, drug=drug)
        for i, (text, drug) in enumerate(zip(texts, drugs, strict=True))
    ]
    batches = (reports[i : i + BATCH] for i in range(0, len(reports), BATCH))
    return [coded for b in batches for coded in normalization.predict(coder, ner.predict(tagger, b))]
