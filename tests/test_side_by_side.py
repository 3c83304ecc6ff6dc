"""The program that runs the unit tests beside the integration tests."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.side_by_side import NICE

PROGRAM = Path(__file__).with_name("side_by_side.py")
#: Makes a file, waits for that of the other command, and prints its name and how much it gives way.
MEET = """
import os, sys, time
from pathlib import Path
own, other = sys.argv[1:]
Path(own).touch()
end = time.monotonic() + 60
while not Path(other).exists():
    assert time.monotonic() < end, f"{other} is not there"
    time.sleep(0.01)
print(Path(own).name, os.nice(0))
"""


def run(first: list[str], second: list[str]) -> subprocess.CompletedProcess[str]:
    commands = [shlex.join([sys.executable, "-c", *command]) for command in (first, second)]
    return subprocess.run(
        [sys.executable, str(PROGRAM), *commands], capture_output=True, text=True, check=False, timeout=120
    )


def test_both_run_at_once_and_the_first_gives_way_and_is_shown_last(tmp_path: Path) -> None:
    one, other = str(tmp_path / "unit"), str(tmp_path / "integration")
    answer = run([MEET, one, other], [MEET, other, one])
    assert answer.returncode == 0, answer
    shown, own = answer.stdout.splitlines(), os.nice(0)
    assert (shown[0], shown[-1]) == (f"integration {own}", f"unit {min(own + NICE, 19)}")


@pytest.mark.parametrize(("first", "second", "code"), [(0, 0, 0), (3, 0, 3), (0, 4, 4)])
def test_either_failure_is_one(first: int, second: int, code: int) -> None:
    fails = "import sys; print('came to its end', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    answer = run([fails, str(first)], [fails, str(second)])
    assert answer.returncode == code
    assert (answer.stdout + answer.stderr).count("came to its end\n") == 2
