"""Tensor files are refused when malformed, of a wrong type, or with numbers that are not finite."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
from safetensors.torch import save, save_file

from models.releases.manifest import ReleaseError
from models.releases.store import build, open_release
from models.releases.tensor_header import MAX_HEADER_BYTES
from models.releases.tensors import read_tensors
from tests.models.releases.small_release import manifest_of
from tests.models.releases.stores import refusal

GOOD = {"weight": torch.arange(6, dtype=torch.float32).reshape(2, 3)}


def refused(path: Path) -> str:
    return refusal(ReleaseError, lambda: read_tensors(path))


def test_saved_tensors_are_read_of_any_type_also_empty_ones_and_metadata_is_no_tensor(tmp_path: Path) -> None:
    path = open_release(release_with(save(GOOD, metadata={"format": "pt"}), tmp_path)).file("x.safetensors")
    ((name, tensor),) = read_tensors(path).items()
    assert name == "weight" and torch.equal(tensor, GOOD["weight"])
    kinds = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)
    others = {str(kind): torch.tensor([0, 1, 100]).to(kind) for kind in kinds}
    save_file(others | {"none": torch.empty(0, 5)}, tmp_path / "x.safetensors")
    found = read_tensors(tmp_path / "x.safetensors")
    assert [found[str(kind)].dtype for kind in kinds] == list(kinds) and found["none"].shape == (0, 5)


NAN, INFINITE = float("nan"), float("inf")
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize(
    "bad",
    [
        *(
            torch.tensor([0.0] * 999 + [number], dtype=d)
            for d in FLOATS
            for number in (NAN, INFINITE, -INFINITE)
        ),
        torch.tensor([complex(NAN, 0)]),
        torch.tensor([1.0, NAN]).to(torch.float8_e4m3fn),
    ],
    ids=lambda bad: str(bad.dtype),
)
def test_a_number_that_is_not_finite_is_refused(bad: torch.Tensor, tmp_path: Path) -> None:
    save_file({"good": torch.ones(3), "bad": bad}, tmp_path / "x.safetensors")
    assert refused(tmp_path / "x.safetensors").startswith("x.safetensors: bad ")


WHOLE = save(GOOD)


class CreatesFileWhenUnpickled:
    """Its unpickling creates a file, which shows that code was run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def with_header(header: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header


def out_of_bounds(start: int, end: int) -> bytes:
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [start, end]}
    return with_header(orjson.dumps({"weight": entry})) + b"\0" * 8


def of_shape(shape: list[Any], size: int = 8, dtype: str = "F32") -> bytes:
    """A file with one tensor of this shape in `size` bytes."""
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}
    return with_header(orjson.dumps({"weight": entry})) + b"\0" * size


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    content = pickle.dumps(CreatesFileWhenUnpickled(tmp_path / "ran"))
    (tmp_path / "x.safetensors").write_bytes(content)
    assert refused(tmp_path / "x.safetensors").startswith("x.safetensors: ")
    with pytest.raises(ReleaseError, match="not a safetensors file"):
        release_with(content, tmp_path)
    assert not (tmp_path / "ran").exists()
    pickle.loads(content)
    assert (tmp_path / "ran").exists()


def release_with(content: bytes, tmp_path: Path) -> Path:
    """A release, exactly as declared, with `content` as its only file."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "x.safetensors").write_bytes(content)
    return build(folder, manifest_of(folder), tmp_path / "root").path


@pytest.mark.parametrize(
    "content",
    [
        *(WHOLE[:length] for length in (0, 1, 7, 8, 9, 20, len(WHOLE) // 2, len(WHOLE) - 1)),
        pytest.param(WHOLE + b"\0", id="bytes after the end"),
        pytest.param(with_header(b"{}", (1 << 64) - 1), id="header of the greatest length"),
        pytest.param(with_header(b"{}", 1 << 62), id="header longer than any file"),
        pytest.param(with_header(b'{"a":"' + b"x" * MAX_HEADER_BYTES + b'"}'), id="header beyond the limit"),
        pytest.param(with_header(b"[" * 500_000), id="header nested deeply"),
        pytest.param(with_header(b"[]"), id="header that is a list"),
        pytest.param(with_header(b"not JSON"), id="header that is no JSON"),
        pytest.param(with_header(b"\xff\xfe"), id="header that is no text"),
        pytest.param(out_of_bounds(0, 1 << 40), id="tensor past the end"),
        pytest.param(out_of_bounds(8, 0), id="tensor that ends before it begins"),
        pytest.param(out_of_bounds(4, 12), id="tensor that does not begin at the start"),
        pytest.param(of_shape([1 << 40]), id="shape beyond the file"),
        pytest.param(of_shape([1 << 40, 0], 0), id="huge shape without a number"),
        pytest.param(of_shape([1 << 62, 1 << 62, 0], 0), id="shape beyond 64 bits"),
        pytest.param(of_shape([-2]), id="negative dimension"),
        pytest.param(of_shape([2.0]), id="dimension with a fraction"),
        pytest.param(of_shape([True, 2]), id="dimension of a wrong type"),
        pytest.param(of_shape([1] * 9 + [2]), id="too many dimensions"),
        pytest.param(of_shape([2], dtype="F128"), id="unknown type"),
        pytest.param(with_header(b'{"weight":{"dtype":"F32"}}'), id="tensor without a shape"),
        pytest.param(with_header(b'{"weight":null}'), id="tensor that is null"),
    ],
)  # fmt: skip
def test_a_malformed_file_of_a_release_is_not_read(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"x\.safetensors") as raised:
        read_tensors(open_release(release_with(content, tmp_path)).file("x.safetensors"))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_tensors_that_are_small_in_the_file_and_huge_in_memory_are_refused(tmp_path: Path) -> None:
    entry = {"dtype": "F32", "shape": [1 << 29, 0], "data_offsets": [0, 0]}
    header = {f"weight{i}": entry for i in range(3)}
    with pytest.raises(ReleaseError, match="at most 1073741824 are allowed"):
        release_with(with_header(orjson.dumps(header)), tmp_path)
