"""How much faster than earlier commits is the present one, from posts and sentences to the final topics?

Each commit is unpacked into its own folder, and `pvstream demo` of each runs over the same records in turn,
with the releases that the commit bundles. Processor time per record is that of a run over all records less
that of a run over the first few, so that the start does not count. Rates and wall-clock seconds are those
that the demo reports.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.speed.setup import inputs
from training.common.program_help import run_program

ROOT = Path(__file__).parents[2]
THIS = "HEAD"
TOPICS = ("posts", "sentences")


class Run(NamedTuple):
    """Figures of one run of the demo over all records."""

    cpu_ms: float
    """processor time of a record, in ms, without the start"""
    start_cpu: float
    """processor seconds of the run over the first few records"""
    per_second: float
    first_result: float
    peak: float
    """bytes"""


def demo(checkout: Path, lines: dict[str, list[bytes]]) -> tuple[dict[str, Any], float]:
    """The report of a checkout's demo over the lines of each topic, and the seconds of the processor. Raises
    AssertionError where a record did not come out.
    """
    with tempfile.TemporaryDirectory() as folder:
        report, arguments = Path(folder) / "report.json", []
        for topic, own in lines.items():
            path = Path(folder) / f"{topic}.jsonl"
            path.write_bytes(b"\n".join(own) + b"\n")
            arguments += ["--input", f"{topic}={path}"]
        command = [
            sys.executable,
            "-m",
            "streams",
            "demo",
            "--show",
            "0",
            "--report",
            str(report),
            *arguments,
        ]
        child = subprocess.Popen(
            command,
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, f"the demo of {checkout.name} ended with {child.returncode}"
        figures: dict[str, Any] = json.loads(report.read_bytes())
    assert not figures["missing"], figures["missing"]
    return figures, used.ru_utime + used.ru_stime


def measured(checkout: Path, lines: dict[str, list[bytes]], few: int) -> Run:
    """A run over the first `few` lines of each topic, and one over all."""
    _, start = demo(checkout, {topic: own[:few] for topic, own in lines.items()})
    report, cpu = demo(checkout, lines)
    further = sum(len(own[few:]) for own in lines.values())
    return Run(
        1000 * (cpu - start) / further,
        start,
        report["records_per_second"],
        report["first_result_seconds"],
        report["peak_memory_bytes"],
    )


#: Figures that other programs on the machine change.
OF_THE_WALL = frozenset(
    {"records_per_second", "gain_by_wall", "to_the_first_by_wall", "first_result_seconds"}
)


def rows(taken: dict[str, list[Run]]) -> dict[str, dict[str, Any]]:
    """Medians of each commit; the gains are medians of the ratios of the rounds."""

    def gain(name: str, other: str) -> dict[str, float]:
        pairs = list(zip(taken[name], taken[other], strict=True))
        by_cpu = statistics.median(theirs.cpu_ms / own.cpu_ms for own, theirs in pairs)
        by_wall = statistics.median(own.per_second / theirs.per_second for own, theirs in pairs)
        return {"by_cpu": round(by_cpu, 2), "by_wall": round(by_wall, 2)}

    names, made = list(taken), {}
    for before, name in zip([names[0], *names], names, strict=False):
        median = Run(*map(statistics.median, zip(*taken[name], strict=True)))
        made[name] = {
            "cpu_ms_a_record": round(median.cpu_ms, 2),
            "records_per_second": round(median.per_second, 1),
            **{f"gain_{key}": value for key, value in gain(name, before).items()},
            **{f"to_the_first_{key}": value for key, value in gain(name, names[0]).items()},
            "start_cpu_seconds": round(median.start_cpu, 1),
            "first_result_seconds": round(median.first_result, 1),
            "peak_memory_gb": round(median.peak / 1e9, 2),
        }
    return made


def unpacked(commit: str, folder: Path) -> Path:
    """The files of a commit in the folder."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def compared(
    commits: Sequence[str], lines: dict[str, list[bytes]], few: int, rounds: int
) -> dict[str, list[Run]]:
    """The runs of each commit, given as a hash with an optional description, and of the present one."""
    taken: dict[str, list[Run]] = {name: [] for name in (*commits, THIS)}
    with tempfile.TemporaryDirectory() as parent:
        folders = {one: unpacked(one.split()[0], Path(parent) / one.split()[0]) for one in taken}
        for i in range(rounds):
            for name in list(folders)[:: 1 if i % 2 == 0 else -1]:
                taken[name].append(measured(folders[name], lines, few))
    return taken


def main(
    commits: Annotated[
        list[str], typer.Argument(help="commits in order, each a hash, or a quoted hash with a description")
    ],
    data: Annotated[
        Path, typer.Option(help="folder with streams/; if there is none, the bundled samples are used")
    ] = Path("data"),
    records: Annotated[int, typer.Option(help="records of each topic")] = 192,
    few: Annotated[int, typer.Option(help="records of each topic in the runs that measure the start")] = 8,
    rounds: Annotated[int, typer.Option(help="number of rounds")] = 3,
    wall: Annotated[
        bool, typer.Option(help="also report wall-clock rates and seconds, which a busy machine falsifies")
    ] = True,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    lines, origin = inputs(data, dict.fromkeys(TOPICS, records)), provenance("operation.commits")
    taken = compared(commits, lines, few, rounds)
    figures = {
        "what": "pvstream demo over posts and sentences; gain: to the line above",
        "records": sum(map(len, lines.values())),
        "rounds": rounds,
        "threads_of_an_inference": os.environ.get("PV_THREADS", "default"),
        "load_average": round(os.getloadavg()[0], 1),
    }
    made = {
        name: {key: value for key, value in row.items() if wall or key not in OF_THE_WALL}
        for name, row in rows(taken).items()
    }
    print_and_write(figures | origin | {"rows": made}, result)


if __name__ == "__main__":
    run_program(main)
