"""Checks the header of a safetensors file, which states types and shapes, before anything is allocated."""

from __future__ import annotations

from math import prod
from typing import Any, BinaryIO

import orjson

from models.releases.manifest import ReleaseError

#: Limit of a header, far above the names and shapes of the models here.
MAX_HEADER_BYTES = 1 << 20
#: Numbers in one file: 4 GiB when a model computes with them in 32 bits.
MAX_NUMBERS = 1 << 30
MAX_DIMENSIONS = 8
#: Bytes of a number, by the name of its type.
BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "BOOL": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1,
}  # fmt: skip


def check_header(file: BinaryIO, size: int, where: str) -> None:
    """Raises ReleaseError unless a file of `size` bytes begins with a JSON header of reasonable length, whose
    shapes and types need exactly the bytes that the header gives them inside of the file.
    """
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise ReleaseError(f"{where} has a header of {length} bytes, or is not a safetensors file")
    try:
        header = orjson.loads(file.read(length))
    except orjson.JSONDecodeError:
        header = None
    if not isinstance(header, dict):
        raise ReleaseError(f"{where} is not a safetensors file")
    numbers = 0
    for name, entry in header.items():
        if name != "__metadata__":
            numbers += _numbers(entry, size - 8 - length, f"{where}: tensor {name[:80]!r}")
    if numbers > MAX_NUMBERS:
        raise ReleaseError(f"{where} has tensors of {numbers} numbers, at most {MAX_NUMBERS} are allowed")


def _numbers(entry: Any, size: int, where: str) -> int:
    """The product of a tensor's dimensions, in which an empty dimension counts as one: what a sum over the
    empty dimension would need.
    """
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(begin), int(end)]}:
            pass
        case _:
            raise ReleaseError(f"{where} has no type, shape and offsets")
    if dtype not in BYTES:
        raise ReleaseError(f"{where} holds numbers of type {dtype[:80]}")
    if len(shape) > MAX_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise ReleaseError(f"{where} has no valid shape")
    if not 0 <= begin <= end <= size or prod(shape) * BYTES[dtype] != end - begin:
        raise ReleaseError(f"{where} of shape {shape} does not fit its bytes in the file")
    return prod(n or 1 for n in shape)
