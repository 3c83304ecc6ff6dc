"""Records to bytes and back: orjson writes, pydantic reads strictly."""

from __future__ import annotations

from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

R = TypeVar("R")


class BadRecord(ValueError):
    """Bytes that are no record of the wanted type. The message names the place and never quotes the text."""


def encode(record: Any) -> bytes:
    """One line of JSON; equal records give equal bytes."""
    return orjson.dumps(record, option=orjson.OPT_UTC_Z)


def decode(kind: type[R], data: bytes | None) -> R:
    """The record in `data`; unknown fields are passed over. Raises BadRecord."""
    if data is None:
        raise BadRecord("no value")
    try:
        record: R = adapter(kind).validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadRecord(f"{place}: {first['msg']}" if place else first["msg"]) from None
    return record


def schema(kind: type[Any]) -> dict[str, Any]:
    """JSON Schema of a topic's records, from the adapter that reads them."""
    return adapter(kind).json_schema()


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """The reader of a record type; building one takes milliseconds, so each is built once."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
