"""What a measurement ran on and from which code, without which its figures mean nothing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any


def described(module: str) -> dict[str, Any]:
    """Processor, cores, Python, commit and command line."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else ""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    # A path of this machine means nothing elsewhere; a release is named by its last part.
    arguments = [Path(a).name if Path(a).is_absolute() else a for a in sys.argv[1:]]
    if "--data" in arguments:
        arguments[arguments.index("--data") + 1] = "DATA"
    return {
        "machine": f"{model or platform.processor()}, {len(os.sched_getaffinity(0))} cores",
        "python": platform.python_version(),
        "commit": commit,
        "command": "python " + " ".join([f"-m benchmarks.{module}", *arguments]),
    }


def write_whole(path: Path, content: Any) -> None:
    """Hours may stand in a result: a power cut leaves the old file or the new one."""
    aside = path.with_suffix(".new")
    with aside.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
