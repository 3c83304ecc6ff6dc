"""The deletion of a report passes every stage behind the report itself, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from streams.agents.pipeline import STAGES
from streams.broker.deletions import Deletions, Place
from streams.codec import encode
from streams.records import ExpandedReport, Report, TaggedReport
from streams.stage import Stage, run_stage
from streams.topics import INPUTS, TOPICS
from tests.fakes import FakePorts, FakeTagger, batches_of, inbound, loaded


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
async def test_every_stage_passes_a_deletion_on_between_the_records_around_it(stage: Stage[Any, Any]) -> None:
    seen: list[str] = []

    def predict(model: Any, batch: Sequence[Any]) -> list[Any]:
        seen.extend(r.id for r in batch)
        return list(batch)

    kind = stage.source.record
    assert kind is not None and issubclass(kind, Report)

    def record(offset: int, value: bytes | None) -> Any:
        return replace(inbound(offset, value, stage.source.name), key=b"a")

    def full(text: str) -> bytes:
        return (
            encode(kind(id="a", text=text))
            if stage.source not in INPUTS
            else orjson.dumps({"id": "a", "text": text})
        )

    ports = FakePorts(loaded(FakeTagger()))
    records = [record(0, full("first")), record(1, None), record(2, full("again")), record(3, None)]
    await run_stage(replace(stage, predict=predict, count=None), batches_of(records), ports)
    sent = [(key, value is None) for key, value, _ in ports.to(stage.sink.name)]
    assert sent == [(b"a", False), (b"a", True), (b"a", False), (b"a", True)]
    assert seen == ["a", "a"] and ports.acked == [0, 1, 2, 3]
    assert [p.report is None for p in ports.observed] == [False, True, False, True]
    assert kind in (Report, ExpandedReport, TaggedReport)


def test_a_tombstone_deletes_what_was_before_it_and_not_what_came_after() -> None:
    deletions = Deletions([b"a"], {0: 3, 1: 0})
    deletions._tombstones = {b"a": [Place(0, 5), Place(1, 2)]}
    assert deletions.follow(b"a", Place(0, 4))
    assert deletions.follow(b"a", Place(0, 6)), "the key was deleted in the partition it moved to"
    assert not deletions.follow(b"b", Place(0, 4))
    assert [deletions.are_unknown(Place(0, n)) for n in (2, 3)] == [True, False]
    deletions._tombstones = {b"a": [Place(0, 5)]}
    assert not deletions.follow(b"a", Place(0, 6))


def test_every_topic_with_texts_forgets_them_and_keeps_tombstones_as_long_as_the_texts() -> None:
    for topic in TOPICS:
        entries = topic.configuration()
        if topic.record is not None and issubclass(topic.record, Report):
            assert entries["cleanup.policy"] == "compact,delete", topic.name
            assert entries["delete.retention.ms"] == entries["retention.ms"]
            assert int(entries["max.compaction.lag.ms"]) < 24 * 3600 * 1000
        if topic.name not in {"releases", "cursors", "signals", "reviews"}:
            assert 0 < int(entries["retention.ms"]) <= 30 * 24 * 3600 * 1000
            assert int(entries["segment.ms"]) <= 24 * 3600 * 1000
