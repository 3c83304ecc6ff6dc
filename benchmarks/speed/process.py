"""The whole process, `pvstream demo` with all stages and its embedded broker: start, memory and speed.

It runs on the records alone, and on the same with other lines among them: invalid ones, each of which must be
refused, and valid ones with unusual texts, which must come out as every other.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.speed.setup import Setup
from streams.agents.pipeline import STAGES, stages_from
from streams.codec import encode

#: Lines that are not valid reports.
BROKEN: list[bytes] = [
    b"not json",
    b'{"text": "no id"}',
    b'{"id": ["seven"], "text": "wrong type"}',
    json.dumps({"id": "huge", "text": "x" * 2_000_000}).encode(),
    b'{"id": "s", "text": "lone \\ud83d surrogate"}',
    b'{"id": "n", "text": "raw \x00 NUL"}',
    b'{"id": "e", "text": ""}',
    b"\xff\xfe",
]
#: Unusual texts of valid reports.
STRANGE = ["😀🤮💊", "zoloft\u0000 gave me hives", "\u202ezoloft"]
#: Other lines of each topic in the second run.
OTHERS = 40


def process(setup: Setup) -> dict[str, Any]:
    rows = {}
    for name, others in (("records alone", 0), (f"with {OTHERS} other lines a topic", OTHERS)):
        report = _demo(setup.lines, others, seed=7)
        check(report, setup.lines, others)
        rows[name] = {
            "records": sum(report["inputs"].values()),
            "refused": len(report["refused"]),
            "missing": len(report["missing"]),
            "dead": len(report["dead"]),
            "records_per_second": round(report["records_per_second"], 1),
            "first_result_seconds": report["first_result_seconds"],
            "peak_memory_gb": round(report["peak_memory_bytes"] / 1e9, 2),
        }
    factors = _growth(setup)
    return {
        "what": "pvstream demo from its start; bytes of a record in all topics over its bytes at first",
        "bytes_grow_on_average": round(statistics.mean(factors), 1),
        "bytes_grow_at_most": round(max(factors), 1),
        "rows": rows,
    }


def other_lines(n: int) -> list[bytes]:
    """Lines of which every fourth, from the first, is a valid report with an unusual text."""
    unusual = [
        json.dumps({"id": f"strange-{i}", "text": STRANGE[i % len(STRANGE)]}).encode() for i in range(n)
    ]
    return [unusual[i] if i % 4 == 0 else BROKEN[i % len(BROKEN)] for i in range(n)]


def check(report: dict[str, Any], lines: dict[str, list[bytes]], others: int) -> None:
    """Raises AssertionError unless every valid line came out, once, and every other line was refused."""
    lost = {name: report[name] for name in ("missing", "duplicated", "dead")}
    assert not any(lost.values()), lost
    unusual = -(-others // 4)
    assert sum(report["inputs"].values()) == sum(len(own) + unusual for own in lines.values())
    assert len(report["refused"]) == len(lines) * (others - unusual), report["refused"]


def _demo(lines: dict[str, list[bytes]], others: int, seed: int) -> dict[str, Any]:
    """The report of `pvstream demo`, as a process, on these lines and `others` other lines a topic."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for topic, valid in lines.items():
            mixed = [*valid, *other_lines(others)]
            if others:
                rng.shuffle(mixed)
            path = Path(folder) / f"{topic}.jsonl"
            path.write_bytes(b"\n".join(mixed) + b"\n")
            arguments += ["--input", f"{topic}={path}"]
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "streams", "demo", "--show", "0", "--report", str(report)]
        subprocess.run(
            [*command, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return dict(json.loads(report.read_bytes()))


def _growth(setup: Setup) -> list[float]:
    """Size of each report of several stages in all topics together over its size on arrival."""
    factors = []
    for topic in setup.lines:
        chain = stages_from(topic)
        if len(chain) == 1:
            continue
        read = [setup.before[topic, stage.name] for stage in chain]
        last = next(s for s in STAGES if s.name == chain[-1].name)
        written = [*read[1:], last.predict(setup.models[last.name].model, read[-1])]
        for i, report in enumerate(read[0]):
            first = len(encode(report))
            factors.append((first + sum(len(encode(records[i])) for records in written)) / first)
    return factors
