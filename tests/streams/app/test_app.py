from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from faust.types import ConsumerMessage

from streams.app.consumer import CommittedConsumer, _CommittedConsumerThread
from streams.app.ports import FIRST_BATCH, FaustPorts, _Place
from streams.app.stage_app import _App
from streams.inference import InferenceWorkers
from streams.monitoring.progress import Progress
from streams.settings import Settings


def test_the_starts_and_stops_of_fausts_services_are_no_messages_of_ours() -> None:
    for service in (_App, CommittedConsumer, _CommittedConsumerThread):
        assert service.logger.name == "faust"


async def test_a_stage_has_one_place_at_most_and_hands_it_over_once() -> None:
    inference = InferenceWorkers(1)
    place = _Place(inference)
    place.leave()
    await place.enter()
    assert (place.handed_over(), place.handed_over()) == (True, False)
    other = asyncio.ensure_future(_Place(inference).enter())
    await asyncio.sleep(0)
    assert not other.done()
    await inference.run(int, placed=True)
    await asyncio.wait_for(other, 5)
    inference.close()


@pytest.mark.parametrize("first", [1, FIRST_BATCH, 20])
async def test_only_the_first_batch_is_small(first: int) -> None:
    def messages(start: int, n: int) -> list[Any]:
        return [
            ConsumerMessage("posts", 0, i, 0.0, 0, headers={}, key=b"k", value=b"v", checksum=None)
            for i in range(start, start + n)
        ]

    class Records:
        async def batches(self, size: int, wait: float, place: Any) -> AsyncIterator[list[Any]]:
            yield messages(0, first)
            yield messages(first, 20)

    application: Any = None
    records: Any = Records()
    workers = InferenceWorkers()
    ports = FaustPorts(application, records, workers, Progress("ner"), Settings())
    batches = [[r.offset for r in batch] async for batch in ports.batches(64, 0.05)]
    workers.close()
    assert [offset for batch in batches for offset in batch] == list(range(first + 20))
    rest = [first - FIRST_BATCH] if first > FIRST_BATCH else []
    assert [len(batch) for batch in batches] == [min(first, FIRST_BATCH), *rest, 20]
