"""Lets a consumer of aiokafka wait for a broker that names no node yet.

A Kafka that has just started, or a busy one, may answer a metadata request without any broker. aiokafka then
fails an assertion where it asks for the coordinator of the group. That ends the task which keeps the
membership, and the consumer would stay without partitions. Here the lookup fails with an error after which
aiokafka asks again.
"""

from __future__ import annotations

from typing import Any

from aiokafka.errors import NodeNotReadyError


def retry_unknown_nodes(client: Any) -> None:
    """Changes the lookup of this AIOKafkaClient; it raises NodeNotReadyError while no node is known."""
    lookup = client.coordinator_lookup

    async def retriable_lookup(kind: Any, key: str) -> Any:
        if client.get_random_node() is None:
            raise NodeNotReadyError("the broker names no node")
        return await lookup(kind, key)

    client.coordinator_lookup = retriable_lookup
