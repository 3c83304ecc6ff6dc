"""What an import and the allocator's settings change in a process, and what is done once in it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from models.memory import peak_bytes
from models.once import once
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


def run(code: str, *arguments: str, **environment: str) -> str:
    """What a program prints without the variables that are set or looked at here, but for those given."""
    bare = {k: v for k, v in os.environ.items() if k not in SETTINGS and not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT, env=bare | environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def test_an_import_of_models_and_of_all_its_modules_changes_no_variable() -> None:
    assert json.loads(run(CHANGED, "models").splitlines()[-1]) == {}


@pytest.mark.parametrize("entry", ["streams.__main__", "training", "benchmarks"])
def test_an_entry_point_sets_what_the_environment_does_not(entry: str) -> None:
    found = json.loads(run(STARTED, entry, MKL_CBWR="COMPATIBLE").splitlines()[-1])
    assert {name: found.get(name) for name in SETTINGS} == SETTINGS | {"MKL_CBWR": "COMPATIBLE"}


glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")

#: Six threads have memory at the same time; then the allocator describes its arenas.
ARENAS = """
import ctypes, sys, threading
from models.memory import share_arenas
share_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
barrier = threading.Barrier(6)
def allocate():
    barrier.wait()
    libc.malloc(ctypes.c_size_t(50_000))
    barrier.wait()
threads = [threading.Thread(target=allocate) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""

#: Of 40 MB in small parts one in ten is kept, the last too; prints the megabytes that are given back then.
TRIMMED = """
import ctypes
from models.memory import give_back
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(l.split()[1]) // 1024 for l in lines if l.startswith("RssAnon"))
parts = [libc.malloc(ctypes.c_size_t(100_000)) for _ in range(401)]
for part in parts: ctypes.memset(part, 1, 100_000)
for i, part in enumerate(parts):
    if i % 10: libc.free(ctypes.c_void_p(part))
before = resident()
give_back()
print(before - resident())
"""


@glibc
@pytest.mark.parametrize(("environment", "most"), [({}, 2), ({"MALLOC_ARENA_MAX": "4"}, 4)])
def test_threads_share_two_arenas_or_as_many_as_the_environment_says(
    environment: dict[str, str], most: int, tmp_path: Path
) -> None:
    run(ARENAS, str(tmp_path / "info.xml"), **environment)
    assert (tmp_path / "info.xml").read_text().count("<heap nr=") == most


@glibc
def test_free_pages_between_used_ones_go_back_to_the_system() -> None:
    assert int(run(TRIMMED)) > 25


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="not told by this system")
def test_the_peak_is_that_of_the_process_and_not_of_a_larger_parent() -> None:
    ballast = bytearray(b"x") * 300_000_000
    code = "from models.memory import peak_bytes; ballast = bytearray(50_000_000); print(peak_bytes())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 5_000_000 < int(done.stdout) < len(ballast)
    assert peak_bytes() > len(ballast)


def test_threads_that_ask_at_once_share_one_result() -> None:
    calls: list[str] = []
    barrier = threading.Barrier(4)

    @once
    def made(name: str) -> object:
        calls.append(name)
        time.sleep(0.05)
        return object()

    def ask() -> object:
        barrier.wait(10)
        return made("a")

    with ThreadPoolExecutor(4) as pool:
        results = {id(f.result(10)) for f in [pool.submit(ask) for _ in range(4)]}
    assert (len(results), calls) == (1, ["a"])
    assert made("b") is not made("a")


def test_an_error_is_raised_and_not_kept() -> None:
    answers = iter([0, 1])

    @once
    def divided() -> float:
        return 1 / next(answers)

    with pytest.raises(ZeroDivisionError):
        divided()
    assert divided() == divided() == 1
