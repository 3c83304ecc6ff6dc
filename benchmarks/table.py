"""Writes RESULTS.md: the figures that stand for each task, next to baselines and published figures.

python -m benchmarks.table
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.headline import HEADLINES, table
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

The manifests of the bundled releases have all their scores, and `benchmarks/results` has a file for each
measurement. Programs and results of questions that are answered are in the history:
[contributing.md](../docs/contributing.md#record-a-result) names the commit.
"""


def text() -> str:
    """RESULTS.md as it should be."""
    lines = [INTRODUCTION, *table(HEADLINES), "", LIMITS]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    (ROOT / "RESULTS.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
