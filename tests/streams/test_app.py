from __future__ import annotations

from typing import Any

import faust
from faust.types import ConsumerMessage

from streams.app import ExplicitAckEvent


class Consumer:
    """Counts the messages that it is told are done."""

    def __init__(self) -> None:
        self.acked: list[int] = []

    def ack(self, message: Any) -> bool:
        self.acked.append(message.offset)
        return True


def event_of(kind: type[faust.Event], consumer: Consumer) -> Any:
    message = ConsumerMessage(
        "posts", 0, 7, timestamp=0.0, timestamp_type=0, headers={}, key=b"k", value=b"v", checksum=None
    )

    class App:
        pass

    app: Any = App()
    app.consumer = consumer
    message.incref()
    return kind(app, b"k", b"v", {}, message)


def test_what_faust_skips_on_a_rebalance_is_not_acked() -> None:
    faults, ours = Consumer(), Consumer()
    assert event_of(faust.Event, faults).ack()
    assert faults.acked == [7], "Faust's own event is acked by whoever asks"
    event = event_of(ExplicitAckEvent, ours)
    assert not event.ack()
    assert ours.acked == []
    event.finished = True
    assert event.ack()
    assert ours.acked == [7]
