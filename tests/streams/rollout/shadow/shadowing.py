"""Reports, and the live outputs for them, that the tests give to a shadow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from models.types import ShortQuestion
from streams.agents.pipeline import stage_named
from streams.codec import encode
from streams.items import Item
from streams.provenance import Maker, with_provenance
from streams.records import Report, Summary, extend
from tests.fakes import inbound

STAGE = stage_named("summarization")
NO_VERSION = "0" * 12
TEXTS = [
    "SUBJECT: metformin\nMESSAGE: On it for two years. Can metformin cause hair loss? Thanks a lot.",
    "My father takes warfarin. What foods should he avoid with warfarin?",
    "No question here.",
]


def reports(n: int = 3, first: int = 0) -> list[Report]:
    return [Report(id=f"q-{first + i}", text=TEXTS[i % len(TEXTS)]) for i in range(n)]


def processed(report: Report, output: Any = None) -> Item:
    return Item(inbound(0, encode(report), "questions"), report, output)


def summaries(batch: Sequence[Report], *, different: frozenset[str] = frozenset()) -> list[Summary]:
    """A summary of each report, its first characters; fewer of them for the ids in `different`."""
    lengths = [5 if r.id in different else 8 for r in batch]
    questions = [
        ShortQuestion(r.text[:n], "extractive", 0.5, 0, n) for r, n in zip(batch, lengths, strict=True)
    ]
    return [extend(Summary, r, summary=q) for r, q in zip(batch, questions, strict=True)]


def processed_live(batch: Sequence[Report]) -> list[Item]:
    """The batch with the outputs of `summaries` but another score, which is not part of the decision."""
    live = []
    maker = Maker(STAGE.name, "f" * 12, 1)
    for report, output in zip(batch, summaries(batch), strict=True):
        record = inbound(0, encode(report), "questions")
        scored = replace(output, summary=replace(output.summary, score=0.7))
        live.append(Item(record, report, with_provenance(scored, report, maker, record)))
    return live
