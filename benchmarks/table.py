"""Writes RESULTS.md: the figures that stand for each task, next to baselines and published figures.

python -m benchmarks.table
python -m benchmarks.table --all    prints every score of the manifests and every file of benchmarks/results
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.headline import FURTHER, HEADLINES, RESULTS, table
from models.releases.store import bundled
from models.types import TASKS
from training.common.program_help import run_program

ROOT = Path(__file__).parent

INTRODUCTION = """\
# Results

## At a glance

Every score is measured on the model as it is served and stands next to that of a trivial method.
The papers' models have about 110 to 400 million parameters; ours are all made over `mini`, which has 22.7.
"""
LIMITS = """\
## Limits

- One training run moves most scores by about a point; intervals are of the test records only.
- The held-out posts of the teaching corpus are synthetic and by the hand that wrote the training texts. They
  compare two versions, and say little about real posts.
- Speeds are of shared machines: compare ratios within a file, not seconds between files.
- A figure of an older release says so. Each file names its command, as it was called then, its commit and its
  machine.

`python -m benchmarks.table --all` prints all scores of the bundled releases' manifests and all files of
`benchmarks/results`. Programs and results of questions that are answered are in the history:
[contributing.md](../docs/contributing.md#record-a-result) names the commit.
"""
FURTHER_HEADING = """\
## Further published figures
"""
RELEASES = """\
## Releases

All scores in the manifests of the bundled releases, with what exactly is counted.
"""
MEASUREMENTS = """\
## Measurements

One section for each file of `benchmarks/results`.
"""


def release_rows(task: str) -> list[str]:
    path = bundled(task)
    manifest = json.loads((path / "manifest.json").read_bytes())
    size = sum(f["size"] for f in manifest["files"].values()) / 1e6
    rows = [f"### {task}: {manifest['kind']} (`{path.name}`, {size:.1f} MB over `{manifest['base']}`)", ""]
    rows += ["| data | records | score | value | baseline | what is counted | what the baseline is |"]
    rows += ["|---|---|---|---|---|---|---|"]
    for s in manifest["scores"]:
        base = "" if s["baseline"] is None else s["baseline"]
        rows.append(
            f"| {s['data']} | {s['records']} | {s['name']} | {s['value']} | {base} | {s['definition']} "
            f"| {s['baseline_definition']} |"
        )
    sources = "; ".join(f"{d['name']} ({d['licence']})" for d in manifest["training_data"]) or "none"
    return [*rows, "", f"Trained on: {sources}.", ""]


def result_rows(path: Path) -> list[str]:
    row: dict[str, Any] = json.loads(path.read_bytes())
    rows = [f"### {path.stem}", "", "| figure | value |", "|---|---|"]
    rows += [f"| {name} | {value} |" for name, value in row.items() if not isinstance(value, dict)]
    return [*rows, "", *inner_rows(row.get("rows", {})), ""]


def inner_rows(rows: dict[str, dict[str, Any]]) -> list[str]:
    """A table of a result that has several lines of the same figures."""
    if not rows:
        return []
    names = [name for name, value in next(iter(rows.values())).items() if not isinstance(value, dict)]
    head = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    return head + [
        f"| {key} | " + " | ".join("" if r[n] is None else str(r[n]) for n in names) + " |"
        for key, r in rows.items()
    ]


def text() -> str:
    """RESULTS.md as it should be."""
    lines = [INTRODUCTION, *table(HEADLINES), "", FURTHER_HEADING, *table(FURTHER), "", LIMITS]
    return "\n".join(lines).rstrip() + "\n"


def details() -> str:
    """Every score of the manifests and every file of benchmarks/results."""
    lines = [RELEASES]
    for task in TASKS:
        lines += release_rows(task)
    lines.append(MEASUREMENTS)
    for path in sorted(RESULTS.rglob("*.json"), key=lambda path: path.name):
        lines += result_rows(path)
    return "\n".join(lines).rstrip()


def main(everything: Annotated[bool, typer.Option("--all", help="print every figure")] = False) -> None:
    """Write RESULTS.md, or print everything that is recorded."""
    if everything:
        print(details())
    else:
        (ROOT / "RESULTS.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
