"""Whatever takes seconds to import, a program has said something before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from models.releases.store import bundled
from models.startup_message import LINE, SLOW
from tests.docs.documents import ROOT
from tests.programs import programs

#: Runs a program as `python -m` does, up to the first words: it prints those, or nothing at its end, and the
#: slow packages that have been imported by then.
UP_TO_THE_FIRST_WORDS = f"""
import atexit, importlib.util, os, runpy, sys
_, name, *arguments = sys.argv
def end(text):
    slow = sorted({{*{set(SLOW)!r}, os.environ.get("ALSO")}} & sys.modules.keys())
    print("AT THE FIRST WORDS:", text.strip(), slow, file=sys.__stdout__, flush=True)
    os._exit(0)
class Ends:
    def write(self, text):
        end(text)
    def flush(self):
        pass
atexit.register(end, "")
sys.stdout = sys.stderr = Ends()
sys.argv = ["-m", *arguments]
importlib.util.find_spec(name + ".__main__")
runpy.run_module(name, run_name="__main__", alter_sys=True)
"""


def at_the_first_words(program: str, *arguments: str, also: str = "") -> str:
    """What is printed first, and the slow packages, and the module `also`, that were imported before."""
    env = {"PV_BROKER": "kafka://127.0.0.1:1", "PYTHONPATH": str(ROOT), "ALSO": also}
    done = subprocess.run(
        [sys.executable, "-c", UP_TO_THE_FIRST_WORDS, program, *arguments], capture_output=True, text=True,
        check=True, env=os.environ | env, cwd=ROOT,
    )  # fmt: skip
    assert "Traceback" not in done.stdout
    return done.stdout.partition("AT THE FIRST WORDS: ")[2].strip()


@pytest.mark.parametrize("program", [*programs("training"), *programs("benchmarks")])
def test_a_program_speaks_before_it_imports_what_is_slow(program: str) -> None:
    assert at_the_first_words(program, "--help").endswith("[]")


def test_training_says_what_it_loads() -> None:
    assert at_the_first_words("training", "--help") == f"{LINE.format('torch')} []"


@pytest.mark.parametrize(
    "arguments",
    ["evaluate posts --limit 1", f"verify {bundled('ner')}", "demo", "check --load", "replay posts"],
)
def test_a_command_speaks_before_it_imports_what_is_slow(arguments: str) -> None:
    assert at_the_first_words("streams", *arguments.split()).endswith("[]")


def test_a_worker_speaks_before_it_imports_its_stage_whose_rules_take_half_a_second() -> None:
    before = at_the_first_words("streams", "worker", "--stage", "ner", also="streams.agents.pipeline")
    assert before == f"{LINE.format('faust')} []"
