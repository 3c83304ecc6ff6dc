from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.batches import bounded_batches
from streams.items import Item, decoded
from streams.records import Report
from streams.stage import Stage, run_stage
from streams.topics import MENTIONS, POSTS
from tests.fakes import FakePorts, batches_of, inbound, loaded

LIMIT = 600
Sizes = Sequence[int | None]


def records(sizes: Sizes) -> list[Item]:
    """Reports with texts of these lengths; None stands for a tombstone and 0 for a record that is none."""
    return [decoded(POSTS, inbound(i, value(size))) for i, size in enumerate(sizes)]


def value(size: int | None) -> bytes | None:
    if size is None:
        return None
    return orjson.dumps({"id": "r", "text": "é" * size}) if size else b"no report"


def cut(sizes: Sizes) -> list[list[int | None]]:
    """The sizes of the records of each batch."""
    return [[sizes[item.record.offset] for item in batch] for batch in bounded_batches(records(sizes), LIMIT)]


def test_a_batch_is_bounded_by_its_characters_and_a_long_text_is_alone() -> None:
    assert cut([100, 150, 150, 150, 120, 10]) == [[100, 150, 150, 150], [120, 10]]
    short = [5] * 31
    assert cut([*short, 590, *short, 151]) == [short, [590], short, [151]]
    assert cut([None, 0, 100, None, 0]) == [[None, 0, 100, None, 0]]
    assert cut([None, 599, 0, None, 5]) == [[None], [599, 0, None], [5]]


def test_a_record_in_whose_inference_a_process_has_died_is_alone_and_after_three_a_dead_letter() -> None:
    deaths = [0, 0, 1, 2, 0, 3, 0]
    sources = [replace(item.record, deaths=n) for item, n in zip(records([5] * 7), deaths, strict=True)]
    items = [decoded(POSTS, source) for source in sources]
    batches = bounded_batches(items, LIMIT)
    assert [[i.record.offset for i in batch] for batch in batches] == [[0, 1], [2], [3], [4, 5, 6]]
    assert [item.fault.reason for item in items if item.fault is not None] == ["process_died"]
    deletion = replace(inbound(7, None), deaths=3)
    assert decoded(POSTS, deletion) == Item(deletion)


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(0, 800), max_size=40))
def test_every_record_is_in_one_batch_in_order_and_none_is_too_large(sizes: list[int | None]) -> None:
    batches = cut(sizes)
    assert [size for batch in batches for size in batch] == sizes
    for batch in batches:
        texts = [size for size in batch if size]
        assert batch
        assert sum(texts) <= LIMIT or len(texts) == 1
        assert len(texts) == 1 or all(size <= LIMIT / 4 for size in texts)


async def test_a_model_without_an_answer_deletes_nothing() -> None:
    def silent(_: Any, reports: Sequence[Report]) -> list[Any]:
        return [None for _ in reports]

    ports = FakePorts(loaded(None))
    source = inbound(0, value(5))
    await run_stage(Stage("ner", POSTS, MENTIONS, silent), batches_of([source]), ports)
    assert (ports.to("mentions"), ports.observed) == ([], [])
    ((_, sent, headers),) = ports.to("posts.dead")
    assert (sent, headers["pv-reason"]) == (source.value, b"not_encodable")
    assert ports.acked == [0]
