"""Writes RESULTS.md: the figures that stand for each task, next to baselines and published figures.

python -m benchmarks.table
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.headline import HEADLINES, is_measured, result_file, table
from training.common.program_help import run_program

ROOT = Path(__file__).parent

INTRODUCTION = """\
# Results

## At a glance

Every score is measured on the model as it is served and stands next to that of a trivial method.
The papers' models have about 110 to 400 million parameters; ours are made over `mini`, which has 22.7.
"""
#: What is measured, the result file, its row and the column.
SPEED = (
    ("all stages over Kafka, records a second", "brokers", "Apache Kafka", "records_per_second"),
    ("p99 of the time of a record at half load, seconds", "latency", "50% of capacity", "p99_seconds"),
    ("a stage without a model to a bare loop, by CPU", "framework", "bare, same functions", "by_cpu"),
    ("`ner` to transformers.pipeline, by CPU", "naive", "transformers.pipeline, float32, batch 1", "by_cpu"),
    ("two threads to one, by records a second", "scaling", "2 threads, batch 64", "speed_to_one"),
    ("two processes to one, over Kafka", "scaling", "2 processes of 1 threads", "speed_to_one"),
    ("memory of each of the two, MB", "scaling", "2 processes of 1 threads", "megabytes_a_worker"),
)
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
    lines = [INTRODUCTION, *table(HEADLINES), "", *speed(), "", LIMITS]
    return "\n".join(lines).rstrip() + "\n"


def speed() -> list[str]:
    """Lines of a table of speeds that have a result, each of its commit and on its machine."""
    lines = ["## Speed", "", "| measured | figure | on | load | commit |", "|---|---|---|---|---|"]
    for what, name, row, column in SPEED:
        if not is_measured(name):
            continue
        found = json.loads(result_file(name).read_bytes())
        cells = (found["rows"][row][column], found["machine"], found["load_average"], found["commit"])
        lines.append(f"| {what} | {' | '.join(map(str, cells))} |")
    return lines


def main() -> None:
    (ROOT / "RESULTS.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
