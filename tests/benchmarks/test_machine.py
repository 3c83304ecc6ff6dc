"""The machine that a result names."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from benchmarks.machine import processor


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu avx2 avx512f avx512_bf16 amx_bf16", "Some CPU: fast (AMX)"),
        ("fpu avx2 avx512f avx512_bf16", "Some CPU: fast (AVX-512 BF16)"),
        ("fpu avx2", "Some CPU: fast (AVX2)"),
        ("fpu avx", "Some CPU: fast"),
    ],
)
def test_a_processor_is_named_with_its_fastest_instructions(
    tmp_path: Path, flags: str, expected: str
) -> None:
    file = tmp_path / "cpuinfo"
    core = f"processor\t: 0\nmodel name\t: Some CPU: fast\nflags\t\t: {flags}\n\n"
    file.write_text(core * 2)
    assert processor(file) == expected


def test_without_a_list_of_processors_the_platform_names_its_own(tmp_path: Path) -> None:
    assert processor(tmp_path / "nothing") == platform.processor()
