"""How fast is this tree to another commit? Both run the same parts in turns over the same records."""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = "benchmarks/results/speed"
#: Parts whose figures are compared.
PAIRED = ("stages", "brokers")


def landed() -> str:
    """The last commit that changed the results of these parts; raises OSError outside of a clone."""
    return (
        _git("log", "-1", "--format=%H", "--", *(f"{RESULTS}/{part}.json" for part in PAIRED))
        .decode()
        .strip()
    )


def against(commit: str, options: list[str], minutes: float) -> dict[str, Any]:
    """Medians of the ratios of each row, from as many turns as the minutes allow and at least one. Raises
    OSError where there is no such commit, or its benchmark fails.
    """
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    end = time.monotonic() + 60 * minutes
    turns, longest = 0, 0.0
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        other = Path(folder, "tree")
        with tarfile.open(fileobj=BytesIO(_git("archive", commit))) as files:
            files.extractall(other, filter="data")
        while not turns or time.monotonic() + longest < end:
            began = time.monotonic()
            old, new = (_rows(tree, Path(folder), options) for tree in (other, ROOT))
            for name in old.keys() & new.keys():
                for column in old[name].keys() & new[name].keys() - {"records"}:
                    ratios[name][column].append(new[name][column] / old[name][column])
            turns, longest = turns + 1, max(longest, time.monotonic() - began)
    rows = {
        name: {
            f"{column}_to_then": round(statistics.median(found), 2)
            for column, found in sorted(columns.items())
        }
        for name, columns in sorted(ratios.items())
    }
    return {"commit": commit, "turns": turns, "rows": rows}


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True)
    if done.returncode:
        raise OSError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _rows(tree: Path, folder: Path, options: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.speed", "--parts", ",".join(PAIRED)]
    env = os.environ | {"PYTHONPATH": str(tree)}
    command += [*options, "--json", str(folder)]
    if subprocess.run(command, cwd=tree, env=env, check=False, stdout=subprocess.DEVNULL).returncode:
        raise OSError(f"{shlex.join(command)} fails in {'this tree' if tree == ROOT else 'the other'}")
    found: dict[str, Any] = {}
    for part in PAIRED:
        found |= json.loads((folder / f"{part}.json").read_bytes())["rows"]
    return found
