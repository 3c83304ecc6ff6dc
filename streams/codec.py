"""Converts records to bytes and back: orjson writes, pydantic reads in strict mode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

R = TypeVar("R")


class BadRecord(ValueError):
    """Bytes that are not a record of the expected type; the message names the field, but quotes no text."""


def encode(record: Any) -> bytes:
    """One line of JSON; equal records give equal bytes."""
    return orjson.dumps(record, option=orjson.OPT_UTC_Z)


def decode(kind: type[R], data: bytes | None) -> R:
    """The record of type `kind` in `data`; unknown fields are ignored. Raises BadRecord."""
    if data is None:
        raise BadRecord("no value")
    try:
        record: R = adapter(kind).validate_json(data, strict=True)
    except ValidationError as error:
        raise BadRecord(_described(kind, error)) from None
    return record


def decode_any(kinds: Iterable[type[R]], data: bytes | None) -> R:
    """The record of the first of these types that the data are of; raises the BadRecord of the first type."""
    first = None
    for kind in kinds:
        try:
            return decode(kind, data)
        except BadRecord as error:
            first = first or error
    raise first or BadRecord("no type of record")


def _described(kind: type[Any], error: ValidationError) -> str:
    """The first error and its place. Keys of dictionaries are a producer's own words and are left out."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    known = {f.name for f in fields(kind)} if is_dataclass(kind) else set()
    place = ".".join(str(part) for part in first["loc"][:1] if part in known)
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def schema(kind: type[Any]) -> dict[str, Any]:
    """JSON Schema of a record type, from the same adapter that `decode` uses."""
    return adapter(kind).json_schema()


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """The pydantic adapter of a record type; cached, because building one takes milliseconds."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
