"""How much the bundled releases ask of their encoder: counts, which no busy machine changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks.speed.setup import QUICK, Setup
from models.encoder.packed.bert import PIECES, ROWS, PackedBert
from streams.stage import Stage

RECORDS = {"posts": 64, "sentences": 64, "questions": 26}
#: Of a batch of the bundled samples: most pieces of a record, and most forward passes. In 16 bits the tagger
#: needs a third pass, over sentences whose tags are nearly tied; the coder has a second, over sentences.
MOST = {
    ("posts", "ner"): (32, 3),
    ("posts", "normalization"): (10, 2),
    ("sentences", "ner"): (32, 3),
    ("sentences", "relation"): (25, 2),
    ("sentences", "normalization"): (9, 2),
    ("questions", "summarization"): (115, 5),
}


@contextmanager
def noted() -> Iterator[list[int]]:
    """The number of pieces of each pass that begins at the lowest layer of a packed model in the block."""
    found: list[int] = []
    embedded = PackedBert._embedded

    def noting(self: PackedBert, ids: Any, *others: Any) -> Any:
        found.append(len(ids))
        return embedded(self, ids, *others)

    with patch.object(PackedBert, "_embedded", noting):
        yield found


class Watched(Setup):
    """The records and models, and the pieces of the forward passes that made the records."""

    def __init__(self, data: Path) -> None:
        self.passes: dict[tuple[str, str], list[int]] = {}
        super().__init__(data, dataclasses.replace(QUICK, records=RECORDS))

    def answers(self, topic: str, stage: Stage[Any, Any], records: Sequence[Any]) -> list[Any]:
        with noted() as self.passes[topic, stage.name]:
            return super().answers(topic, stage, records)


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """The bundled samples."""
    return Watched(Path(tmp_path_factory.mktemp("empty")))


@pytest.mark.slow
@pytest.mark.parametrize("step", MOST, ids="-".join)
def test_a_stage_encodes_few_pieces_in_few_unpadded_passes(setup: Watched, step: tuple[str, str]) -> None:
    passes = setup.passes[step]
    pieces = sum(passes)
    most_pieces, most_passes = MOST[step]
    assert 0 < pieces <= most_pieces * len(setup.before[step])
    assert len(passes) <= most_passes
    assert sum(-n % ROWS for n in passes) < 0.04 * pieces
    assert max(passes) <= PIECES


def test_the_stage_of_posts_reads_each_piece_once(setup: Watched) -> None:
    model: Any = setup.models["ner"].model
    texts = [report.text for report in setup.before["posts", "ner"]]
    own = sum(len(placed.pieces) for placed in model.encoder.pieces_at(texts))
    passes = setup.passes["posts", "ner"]
    # Beside the special tokens, and a sentence that is read again with its neighbours.
    assert sum(passes) < 1.25 * own
