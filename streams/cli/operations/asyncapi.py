"""The AsyncAPI 3.1 document of all topics, from the table of topics, the stages and the record types.

https://www.asyncapi.com/docs/reference/specification/v3.1.0
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic import TypeAdapter

from models.types import JUDGE, TASKS
from streams import __version__
from streams.agents.pipeline import STAGES
from streams.broker.trace_context import TRACEPARENT, TRACESTATE
from streams.codec import adapter
from streams.dead_letters.headers import ATTEMPTS, DIGEST, TRUNCATED, Reason
from streams.order import ORIGIN, RECEIVED_AT
from streams.records import SHADOW, Announcement, Cursor, Signal
from streams.rollout.trust import SIGNATURE_HEADER
from streams.settings import EMBEDDED, OAUTH, Settings
from streams.store.follow import FOLLOWED
from streams.topics import CURSORS, INPUTS, LEASES, RELEASES, SIGNALS, TOPICS, Topic, broker_name, group_id

BINDING = "0.5.0"
_TEXT: dict[str, Any] = {"type": "string"}
_TRACE = {name: _TEXT | {"description": "W3C Trace Context"} for name in (TRACEPARENT, TRACESTATE)}
_REPORT_KEY = {"type": "string", "minLength": 1, "maxLength": 256, "description": "the id of the report"}
_RELEASE_KEY = {"type": "string", "enum": [*(key for task in TASKS for key in (task, task + SHADOW)), JUDGE]}
_KEYS: dict[type[Any], dict[str, Any]] = {
    Announcement: _RELEASE_KEY,
    Signal: _TEXT | {"description": "drug and term, as `sertraline|Nausea`"},
    Cursor: _TEXT | {"description": "the source, and where it has several, which of them"},
}
"""Of the records whose key is not the id of a report."""
_DEAD_HEADERS = {
    "pv-reason": {"type": "string", "enum": [*get_args(Reason)]},
    "pv-detail": _TEXT | {"description": "kind and place of the error; never the text"},
    "pv-stage": {"type": "string", "enum": [stage.name for stage in STAGES]},
    "pv-release": _TEXT | {"description": "the version of the release that refused it"},
    "pv-topic": _TEXT | {"description": "topic of the source record, without PV_PREFIX"},
    "pv-partition": _TEXT | {"description": "partition of the source record"},
    "pv-offset": _TEXT | {"description": "offset of the source record"},
    ATTEMPTS: _TEXT | {"description": "how often it was sent back"},
    TRUNCATED: _TEXT | {"description": "length in bytes of a value that was cut"},
    DIGEST: _TEXT | {"description": "sha256 of a value that was cut"},
}
_TOMBSTONE_HEADERS = {
    ORIGIN: _TEXT | {"description": "topic/partition/offset of the source record"},
    RECEIVED_AT: {"type": "string", "format": "date-time"},
}
#: Written to input topics, whose records are read more liberally than their schema says.
_LIBERAL = (
    " A producer sets id, text, created_at, drug and indication. An id may be a number; created_at may be "
    "ISO 8601, seconds or milliseconds since 1970; drug may be a name or a list of up to 8. The other fields "
    "of the schema are ignored, and unknown fields are passed on in meta."
)


def document(settings: Settings) -> dict[str, Any]:
    """The document as it is written to JSON; names of topics and groups have PV_PREFIX."""
    kinds = list(dict.fromkeys(topic.record for topic in TOPICS if topic.record is not None))
    inputs: list[Any] = [(kind, "validation", adapter(kind)) for kind in kinds]
    _, schemas = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}")
    components: dict[str, Any] = {"schemas": schemas["$defs"], "messages": _messages(kinds)}
    servers, schemes = _servers(settings)
    if schemes:
        components["securitySchemes"] = schemes
    return {
        "asyncapi": "3.1.0",
        "info": {
            "title": "pvstream",
            "version": __version__,
            "description": "Adverse drug events, relations and short questions from texts on Kafka topics.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        **({"servers": servers} if servers else {}),
        "channels": {topic.name: _channel(topic, settings) for topic in TOPICS},
        "operations": _operations(settings),
        "components": components,
    }


def _messages(kinds: list[type[Any]]) -> dict[str, Any]:
    messages = {kind.__name__: _message(kind) for kind in kinds}
    messages["DeadLetter"] = {
        "summary": "The original record, with headers that say why it could not be processed.",
        "contentType": "application/octet-stream",
        "headers": _headers(_DEAD_HEADERS | _TRACE, required=["pv-reason", "pv-stage", "pv-topic"]),
        "bindings": _key({"description": "the key of the original record, or none"}),
    }
    messages["Tombstone"] = {
        "summary": "What has this key is deleted: a report, or a pair that is no signal any more.",
        "headers": _headers(_TOMBSTONE_HEADERS | _TRACE),
        "payload": {"type": "null"},
        "bindings": _key(_TEXT | {"description": "the key of the deleted record"}),
    }
    return messages


def _message(kind: type[Any]) -> dict[str, Any]:
    is_release = kind is Announcement
    text = " ".join((kind.__doc__ or "").split())
    headers = {SIGNATURE_HEADER: _TEXT | {"description": "64 bytes, Ed25519"}} if is_release else _TRACE
    return {
        "title": kind.__name__,
        "description": text + (_LIBERAL if kind is INPUTS[0].record else ""),
        "headers": _headers(headers),
        "payload": {"$ref": f"#/components/schemas/{kind.__name__}"},
        "bindings": _key(_KEYS.get(kind, _REPORT_KEY)),
    }


def _headers(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def _key(schema: dict[str, Any]) -> dict[str, Any]:
    return {"kafka": {"key": schema, "bindingVersion": BINDING}}


def _channel(topic: Topic[Any], settings: Settings) -> dict[str, Any]:
    names = ["DeadLetter"] if topic.record is None else [topic.record.__name__, "Tombstone"]
    configuration: dict[str, Any] = dict(topic.configuration(settings.replication))
    policy = configuration.pop("cleanup.policy").split(",")
    configuration = {
        n: int(value) if value.lstrip("-").isdigit() else value for n, value in configuration.items()
    }
    configuration["cleanup.policy"] = policy
    name = broker_name(settings, topic.name)
    binding = {
        "topic": name,
        "partitions": topic.partitions or settings.partitions,
        "replicas": settings.replication,
        "topicConfiguration": configuration,
        "bindingVersion": BINDING,
    }
    messages = {name: {"$ref": f"#/components/messages/{name}"} for name in names}
    return {"address": name, "messages": messages, "bindings": {"kafka": binding}}


def _operations(settings: Settings) -> dict[str, Any]:
    """What each part of pvstream receives and sends."""
    operations = {}
    for stage in STAGES:
        group = {"type": "string", "const": group_id(settings, stage.name)}
        for topic in stage.sources:
            which = "" if topic is stage.source else f".{topic.name}"
            operations[f"{stage.name}.receive{which}"] = _operation("receive", topic) | {
                "bindings": {"kafka": {"groupId": group, "bindingVersion": BINDING}}
            }
            operations[f"{stage.name}.refuse{which}"] = _operation("send", topic.dead_letters)
        operations[f"{stage.name}.send"] = _operation("send", stage.sink)
        operations[f"{stage.name}.shadow"] = _operation("send", stage.sink.shadow)
    for topic in INPUTS:
        operations[f"ingest.{topic.name}"] = _operation("send", topic)
    operations["announce"] = _operation("send", RELEASES)
    operations["worker.releases"] = _operation("receive", RELEASES)
    operations["source.resume"] = _operation("receive", CURSORS)
    operations["source.position"] = _operation("send", CURSORS)
    operations["signals"] = _operation("send", SIGNALS)
    operations["web.lease"] = _operation("send", LEASES)
    operations["web.leases"] = _operation("receive", LEASES)
    for followed in FOLLOWED:
        operations[f"store.{followed.name}"] = _operation("receive", followed)
    return operations


def _operation(action: str, topic: Topic[Any]) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{topic.name}"}}


def _servers(settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """The brokers and how to log in, where PV_BROKER names them; never a user or a password."""
    if settings.broker == EMBEDDED:
        return {}, {}
    protocol = "kafka-secure" if "SSL" in settings.security else "kafka"
    schemes: dict[str, Any] = {}
    if settings.security.startswith("SASL"):
        if settings.sasl_mechanism == OAUTH:
            schemes["login"] = {"type": "http", "scheme": "bearer"}
        else:
            kind = {"PLAIN": "plain", "SCRAM-SHA-256": "scramSha256", "SCRAM-SHA-512": "scramSha512"}
            schemes["login"] = {"type": kind[settings.sasl_mechanism]}
    security = {"security": [{"$ref": "#/components/securitySchemes/login"}]} if schemes else {}
    servers = {
        f"broker-{i}": {"host": host, "protocol": protocol, **security}
        for i, host in enumerate(settings.bootstrap, 1)
    }
    return servers, schemes
