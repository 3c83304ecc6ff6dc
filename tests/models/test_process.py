"""What an import sets in a process, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from models.process import SETTINGS

ROOT = Path(__file__).parents[2]

#: Imports the packages that are named and all their modules but programs, and prints what they changed.
CHANGED = """
import importlib, json, os, pkgutil, sys
before = dict(os.environ)
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(json.dumps({k: v for k, v in os.environ.items() if before.get(k) != v}))
"""
#: Imports a module as `python -m` does.
STARTED = """
import importlib, json, os, sys
name, sys.argv = sys.argv[1], ["-m"]
importlib.import_module(name)
print(json.dumps(dict(os.environ)))
"""


def run(code: str, *arguments: str, **environment: str) -> dict[str, str]:
    bare = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT, env=bare | environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_an_import_of_models_and_of_all_its_modules_changes_no_variable() -> None:
    assert run(CHANGED, "models") == {}


@pytest.mark.parametrize("entry", ["streams.__main__", "training", "benchmarks"])
def test_an_entry_point_sets_what_the_environment_does_not(entry: str) -> None:
    found = run(STARTED, entry, MKL_CBWR="COMPATIBLE")
    assert {name: found.get(name) for name in SETTINGS} == SETTINGS | {"MKL_CBWR": "COMPATIBLE"}
