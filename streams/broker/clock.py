"""The clock of this machine beside that of the broker, which refuses records of a time too far ahead."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from aiokafka import AIOKafkaProducer
from aiokafka.errors import InvalidTimestampError

from streams.broker.consumer import running_client
from streams.settings import Settings
from streams.topics import LEASES, broker_name

#: The key of the record with which the broker is asked for its time. Readers of the topic skip it.
KEY = b"clock"
#: Kafka's default of `message.timestamp.after.max.ms`, in seconds.
MOST_AHEAD = 3600.0


async def seconds_ahead(settings: Settings) -> float | None:
    """How far this machine's clock is ahead of the broker's, as exactly as one request takes; None where the
    topic does not have the broker's time. Writes one record without a value, which expires within two days.
    Raises KafkaError.
    """
    producer = AIOKafkaProducer(**settings.client(), acks="all")
    async with running_client(producer):
        await producer.partitions_for(broker_name(settings, LEASES.name))
        sent, started = time.time(), time.monotonic()
        written = await producer.send_and_wait(broker_name(settings, LEASES.name), key=KEY, value=None)
        took = time.monotonic() - started
    if written.timestamp_type == 0:
        return None
    return sent + took / 2 - float(written.timestamp) / 1000


def explained(error: BaseException | None) -> str | None:
    """What an error of a client says, where the cause is the clock; None for any other."""
    if not isinstance(error, InvalidTimestampError):
        return None
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"the broker refuses the time of this machine, {now} UTC: set its clock, or the broker's, by NTP "
        "(message.timestamp.after.max.ms of the broker says how far ahead a record may be)"
    )
