"""The allocator's settings, in processes of their own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from models.memory import peak_bytes

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")

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


def run(code: str, *arguments: str, **environment: str) -> str:
    others = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=others | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize(("environment", "most"), [({}, 2), ({"MALLOC_ARENA_MAX": "4"}, 4)])
def test_threads_share_two_arenas_or_as_many_as_the_environment_says(
    environment: dict[str, str], most: int, tmp_path: Path
) -> None:
    run(ARENAS, str(tmp_path / "info.xml"), **environment)
    assert (tmp_path / "info.xml").read_text().count("<heap nr=") == most


def test_free_pages_between_used_ones_go_back_to_the_system() -> None:
    assert int(run(TRIMMED)) > 25


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="not told by this system")
def test_the_peak_is_that_of_the_process_and_not_of_a_larger_parent() -> None:
    ballast = bytearray(b"x") * 300_000_000
    code = "from models.memory import peak_bytes; ballast = bytearray(50_000_000); print(peak_bytes())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 5_000_000 < int(done.stdout) < len(ballast)
    assert peak_bytes() > len(ballast)
