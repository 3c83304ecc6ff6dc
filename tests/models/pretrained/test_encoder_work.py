"""How much the bundled releases ask of their encoder: counts, which no busy machine changes."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed.passes import Pass, noted
from benchmarks.speed.setup import QUICK, Setup
from benchmarks.speed.timing import side_by_side
from models.encoder.packed.bert import PIECES

RECORDS = {"posts": 64, "sentences": 64, "questions": 26}
#: Of a batch of the bundled samples: most pieces of a record, and most forward passes.
MOST = {
    ("posts", "ner"): (32, 2),
    ("posts", "normalization"): (10, 1),
    ("sentences", "acronym"): (12, 1),
    ("sentences", "relation"): (56, 4),
    ("sentences", "normalization"): (8, 1),
    ("questions", "summarization"): (115, 5),
}


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """The bundled samples."""
    return Setup(Path(tmp_path_factory.mktemp("empty")), dataclasses.replace(QUICK, records=RECORDS))


@cache
def passes_of(setup: Setup, topic: str, stage: str) -> list[Pass]:
    """The forward passes of a stage over the samples of a topic."""
    with noted() as passes:
        side_by_side(setup.calls(stage, topic), 1)
    return passes


@pytest.mark.parametrize("step", MOST, ids="-".join)
def test_a_stage_encodes_few_pieces_in_few_passes_without_padding(
    setup: Setup, step: tuple[str, str]
) -> None:
    topic, stage = step
    passes = passes_of(setup, topic, stage)
    pieces = sum(one.pieces for one in passes)
    most_pieces, most_passes = MOST[step]
    assert 0 < pieces <= most_pieces * len(setup.before[topic, stage])
    assert len(passes) <= most_passes
    assert sum(one.padding for one in passes) < 0.025 * pieces
    assert max(one.pieces for one in passes) <= PIECES


def test_the_stage_of_posts_reads_each_piece_once(setup: Setup) -> None:
    model: Any = setup.models["ner"].model
    texts = [report.text for report in setup.before["posts", "ner"]]
    own = sum(len(placed.pieces) for placed in model.encoder.pieces_at(texts))
    passes = passes_of(setup, "posts", "ner")
    # Beside the special tokens, and a sentence that is read again with its neighbours.
    assert sum(one.pieces for one in passes) < 1.25 * own
