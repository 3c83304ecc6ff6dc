"""How pvstream is installed: the hints name the clone, because the name on PyPI is another project's."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams import __version__
from tests.docs.documents import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDERS = ("streams", "models", "training", "benchmarks", "deploy", "docs", ".ci")
TEXTS = {".py", ".md", ".yml", ".yaml", ".toml", ".sh", ".html", ".json", ".txt", ".cfg", ""}
MOST_BYTES = 1_000_000

_NAME = r"(?:pvstream|pharmacovigilance[-_]stream)"
#: A package of that name from an index: an install of it, or the name with extras or a version.
_FROM_AN_INDEX = re.compile(
    rf"""(?:pip3?|pipx|uv(?:\s+pip)?|poetry)\s+(?:install|add)\b[^\n]*?[\s'"]{_NAME}(?=$|['"\s\[=<>~!@;`,.)])"""
    rf"|\b{_NAME}\[[a-z,_]+\]|\binstall {_NAME}\[",
    re.MULTILINE,
)


def hints(text: str) -> list[str]:
    return [found[0] for found in _FROM_AN_INDEX.finditer(text)]


def texts() -> Iterator[Path]:
    """Code, documents and deployment files; of data only what is small."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != "pyproject.toml")
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in TEXTS and path.stat().st_size < MOST_BYTES:
                yield path


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("pip install pvstream", True),
        ("pip install 'pvstream[store]'", True),
        ("run: pip install --upgrade pvstream==0.1", True),
        ("python -m pip install pharmacovigilance-stream", True),
        ("uv pip install pvstream", True),
        ("is scored by rouge-score: install pvstream[train]", True),
        ("pip install '.[store]'", False),
        ("pip install --constraint constraints.txt --editable '.[cpu]'", False),
        ("pip install -c constraints.txt . && pvstream check", False),
        ("PIP_EXTRA_INDEX_URL=$INDEX docker build --tag pvstream:local .", False),
    ],
)
def test_an_install_from_an_index_is_found_and_from_the_clone_not(line: str, is_found: bool) -> None:
    assert bool(hints(line.split("&&", maxsplit=1)[0])) is is_found


def test_every_hint_installs_from_the_clone() -> None:
    found = {str(path.relative_to(ROOT)): hints(path.read_text(errors="replace")) for path in texts()}
    assert len(found) > 300
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_distribution_has_a_name_of_its_own_and_one_version() -> None:
    assert PROJECT["name"] == "pharmacovigilance-stream"
    assert PROJECT["scripts"] == {"pvstream": "streams.__main__:main"}
    (extras,) = (d for d in PROJECT["optional-dependencies"]["dev"] if d.startswith(PROJECT["name"]))
    assert set(extras.partition("[")[2].rstrip("]").split(",")) <= set(PROJECT["optional-dependencies"])
    assert PROJECT["dynamic"] == ["version"] and "version" not in PROJECT
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def _makes(target: str) -> str:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", *target.split()],
        cwd=ROOT, capture_output=True, text=True, check=True, env=os.environ | {"PIP_ARGS": "--no-cache-dir"},
    )  # fmt: skip
    return done.stdout


def test_the_demo_installs_what_a_user_needs_and_the_tests_add_theirs() -> None:
    demo, test = _makes("demo"), _makes("lint")
    assert "--editable '.[cpu]'" in demo and "[dev]" not in demo
    assert "--editable '.[dev]'" in test
    # pip shows how far it is, and takes what the user gives it.
    assert "--quiet" not in demo and "--no-cache-dir" in demo
    needed = " ".join([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cpu"]])
    assert not re.search(r"chdb|playwright|kubernetes|pyarrow|pytest|mypy|peft", needed)


def test_make_alone_lists_every_target_with_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = dict(re.findall(r"^make ([a-z-]+) +(\S.+)$", done.stdout, re.MULTILINE))
    assert list(listed) == phony.split()
