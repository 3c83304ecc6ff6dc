"""Imports run one way: streams -> models <- training."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Where evaluation and the stream are put together: the gate and the command compare on the public corpora.
MEETING = ROOT / "streams/release_commands.py"
FORBIDDEN = {
    "models": {"streams", "training", "faust", "aiokafka"},
    "training": {"streams"},
    "streams": {"training"},
}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_a_package_imports_only_what_it_may_know_of(package: str) -> None:
    files = list((ROOT / package).rglob("*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file.name}: imports are absolute"
                names = [node.module or ""]
            roots = {name.split(".")[0] for name in names}
            if file == MEETING:
                roots -= {"training"}
            assert not roots & FORBIDDEN[package], f"{file.relative_to(ROOT)}, line {node.lineno}"  # type: ignore[attr-defined]


def test_the_command_line_starts_without_a_model_library() -> None:
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    code = "import sys, streams.__main__, streams.pipeline, streams.ingest; print('torch' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert answer.stdout.strip() == "False"
