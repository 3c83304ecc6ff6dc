from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from faust.types import ConsumerMessage

from streams.app.consumer import CommittedConsumer, _CommittedConsumerThread
from streams.app.ports import FIRST_BATCH, FaustPorts
from streams.app.stage_app import _App
from streams.inference import InferenceWorkers
from streams.monitoring.progress import Progress
from streams.settings import Settings


def test_the_starts_and_stops_of_fausts_services_are_no_messages_of_ours() -> None:
    for service in (_App, CommittedConsumer, _CommittedConsumerThread):
        assert service.logger.name == "faust"


@pytest.mark.parametrize("first", [1, FIRST_BATCH, 20])
async def test_only_the_first_batch_is_small(first: int) -> None:
    def messages(start: int, n: int) -> list[Any]:
        return [
            ConsumerMessage("posts", 0, i, 0.0, 0, headers={}, key=b"k", value=b"v", checksum=None)
            for i in range(start, start + n)
        ]

    class Records:
        async def batches(self, size: int, wait: float) -> AsyncIterator[list[Any]]:
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
