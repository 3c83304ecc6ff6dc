"""Records what a measurement ran on and with which code, and writes result files."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

#: By the flag in /proc/cpuinfo, fastest first.
INSTRUCTIONS = {
    "amx_bf16": "AMX",
    "avx512_bf16": "AVX-512 BF16",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
}


def provenance(module: str) -> dict[str, Any]:
    """Processor, number of cores, Python version, commit and command line of a run of `benchmarks.MODULE`."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    # Absolute paths differ between machines: only the last part is kept, which names a release.
    arguments = [Path(a).name if Path(a).is_absolute() else a for a in sys.argv[1:]]
    if "--data" in arguments:
        arguments[arguments.index("--data") + 1] = "DATA"
    return {
        "machine": f"{processor()}, {len(os.sched_getaffinity(0))} cores",
        "python": platform.python_version(),
        "commit": commit,
        "command": "python " + shlex.join(["-m", f"benchmarks.{module}", *arguments]),
    }


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Name of the processor, and the fastest of INSTRUCTIONS that it has: namesakes differ in them."""
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set(fields.get("flags", "").split())
    fastest = next((name for flag, name in INSTRUCTIONS.items() if flag in flags), None)
    name = fields.get("model name") or platform.processor()
    return f"{name} ({fastest})" if fastest else name


def print_and_write(figures: Any, path: Path | None) -> None:
    """Prints the figures as JSON, and writes them to a file where a path is given."""
    text = json.dumps(figures, indent=2)
    print(text)
    if path is not None:
        path.write_text(text + "\n", encoding="utf-8")


def write_atomically(path: Path, content: Any) -> None:
    """Writes JSON so that a crash leaves either the old or the new file: a result may take hours."""
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
