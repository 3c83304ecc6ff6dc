"""Which cluster a broker belongs to, and the ids of its topics: a topic that is deleted and created again has
the name of the earlier one and another id (Kafka's KIP-516).

aiokafka asks for metadata in a version without ids, so the later one is described here.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.errors import NodeNotReadyError, NoError, for_code
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest_v5
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

METADATA = 3


@dataclass(frozen=True, slots=True)
class TopicId:
    """The id of the cluster and of a topic; of a broker before Kafka 2.8 the second one is empty."""

    cluster: str
    topic: str

    def is_other(self, kept: TopicId) -> bool:
        """Whether this is not the topic of an id that was kept; an empty id says nothing."""
        return self.cluster != kept.cluster or bool(self.topic and kept.topic and self.topic != kept.topic)


async def topic_ids(client: Any, names: Sequence[str]) -> dict[str, TopicId]:
    """The ids of the topics that the broker has, through a started client. Raises KafkaError."""
    node = client.get_random_node()
    if node is None:
        raise NodeNotReadyError("the broker names no node")
    # Not on the connection of the fetches, on which it would wait for new records.
    answer = await client.send(node, _IdsRequest(names), group=ConnectionGroup.COORDINATION)
    cluster = answer.cluster_id or ""
    if answer.API_VERSION < _Request10.API_VERSION:
        found = {name: "" for code, name, *_ in answer.topics if for_code(code) is NoError}
    else:
        found = {name: id_ for code, name, id_, *_ in answer.topics if for_code(code) is NoError}
    return {name: TopicId(cluster, id_) for name, id_ in found.items()}


class _Uuid(AbstractType[str]):  # type: ignore[misc]
    """Sixteen bytes as a hexadecimal text; zeros, which stand for no id, as an empty one."""

    @classmethod
    def encode(cls, value: str) -> bytes:
        return uuid.UUID(value).bytes if value else bytes(16)

    @classmethod
    def decode(cls, data: BytesIO) -> str:
        found = uuid.UUID(bytes=data.read(16))
        return str(found) if found.int else ""


_TEXT = CompactString("utf-8")
_INTEGERS = CompactArray(Int32)


class _Response10(Response):  # type: ignore[misc]
    API_KEY = METADATA
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT), ("tags", TaggedFields)
            ),
        ),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", _TEXT),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", _INTEGERS),
                        ("isr", _INTEGERS),
                        ("offline_replicas", _INTEGERS),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _Request10(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = METADATA
    API_VERSION = 10
    RESPONSE_TYPE = _Response10
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("topic", _TEXT), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _IdsRequest(Request[MetadataRequest_v5 | _Request10]):  # type: ignore[misc]
    """In the version that the broker knows; creates no topic."""

    API_KEY = METADATA

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def build(self, request_struct_class: Any) -> Any:
        if request_struct_class is _Request10:
            return _Request10([("", name, {}) for name in self._names], False, False, False, {})
        return request_struct_class(list(self._names), False)
