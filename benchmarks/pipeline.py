"""How fast is the whole pipeline, beside its models alone, in batches and one record at a time?

The three see the same records, one after the other on the same machine; what counts is their ratio. With
--broken, lines that are no report are mixed in, and the run fails unless each is refused and every good one
comes out.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import described
from streams.agents import acronym, ner, normalization, relation, summarization
from streams.cli.demo import samples
from streams.codec import decode, encode
from streams.pipeline import STAGES
from streams.records import Report
from streams.releases.handle import load_task
from streams.settings import Settings

BROKEN: list[bytes] = [
    b"not json",
    b'{"text": "no id"}',
    b'{"id": 7, "text": "wrong type"}',
    json.dumps({"id": "huge", "text": "x" * 2_000_000}).encode(),
    b'{"id": "s", "text": "lone \\ud83d surrogate"}',
    b'{"id": "n", "text": "raw \x00 NUL"}',
    b'{"id": "e", "text": ""}',
    b"\xff\xfe",
]
STRANGE = ["😀🤮💊", "zoloft\u0000 gave me hives", "\u202ezoloft"]


def inputs(data: Path, limits: dict[str, int]) -> dict[str, list[bytes]]:
    """The first lines of each stream; the bundled samples where there is no data."""
    folder = data / "streams"
    files = {t: folder / f"{t}.jsonl" for t in limits} if folder.is_dir() else samples()
    return {t: files[t].read_bytes().splitlines()[: limits[t]] for t in limits}


def run_pipeline(lines: dict[str, list[bytes]], broken: int, seed: int) -> dict[str, Any]:
    """The report of `pvstream demo`, in a process of its own, over these lines and `broken` others."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for topic, good in lines.items():
            mixed = list(good)
            for i in range(broken // len(lines)):
                strange = json.dumps({"id": f"strange-{i}", "text": STRANGE[i % len(STRANGE)]}).encode()
                mixed.append(strange if i % 4 == 0 else BROKEN[i % len(BROKEN)])
            if broken:
                rng.shuffle(mixed)
            path = Path(folder) / f"{topic}.jsonl"
            path.write_bytes(b"\n".join(mixed) + b"\n")
            arguments += ["--input", f"{topic}={path}"]
        report = Path(folder) / "report.json"
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
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return dict(json.loads(report.read_bytes()))


def run_models(lines: dict[str, list[bytes]], batch: int) -> float:
    """Seconds for the same records through the same five models in this process, without a broker."""
    models = {s.name: load_task(s.name, Settings()).current.model for s in STAGES}
    reports = {t: [decode(Report, line) for line in ls] for t, ls in lines.items()}
    started = time.perf_counter()
    for chunk in chunks(reports.get("posts", []), batch):
        normalization.predict(models["normalization"], ner.predict(models["ner"], chunk))
    for chunk in chunks(reports.get("sentences", []), batch):
        expanded = acronym.predict(models["acronym"], chunk)
        tagged = relation.predict(models["relation"], expanded)
        normalization.predict(models["normalization"], tagged)
    for chunk in chunks(reports.get("questions", []), batch):
        summarization.predict(models["summarization"], chunk)
    return time.perf_counter() - started


def growth(lines: dict[str, list[bytes]], n: int = 400) -> list[float]:
    """How many times its own length a report takes in all topics together, for the first n of each stream."""
    models = {s.name: load_task(s.name, Settings()).current.model for s in STAGES}
    paths: dict[str, list[tuple[Any, str]]] = {
        "posts": [(ner.predict, "ner"), (normalization.predict, "normalization")],
        "sentences": [
            (acronym.predict, "acronym"),
            (relation.predict, "relation"),
            (normalization.predict, "normalization"),
        ],
    }
    found = []
    for topic, stages in paths.items():
        records: Sequence[Any] = [decode(Report, line) for line in lines[topic][:n]]
        first = [len(encode(r)) for r in records]
        total = list(first)
        for predict, task in stages:
            records = predict(models[task], records)
            total = [t + len(encode(r)) for t, r in zip(total, records, strict=True)]
        found += [t / f for t, f in zip(total, first, strict=True)]
    return found


def chunks(items: Sequence[Report], size: int) -> list[Sequence[Report]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def main(
    data: Annotated[Path, typer.Option(help="folder with streams/; without it the bundled samples")] = Path(
        "data"
    ),
    posts: int = 891,
    sentences: int = 1000,
    questions: int = 200,
    broken: Annotated[int, typer.Option(help="lines mixed in that are no report, or strange")] = 0,
    seed: int = 7,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    lines = inputs(data, {"posts": posts, "sentences": sentences, "questions": questions})
    n = sum(map(len, lines.values()))
    report = run_pipeline(lines, broken, seed)
    assert report["missing"] == [] and report["duplicated"] == [] and report["dead"] == [], report
    strange = sum(-(-(broken // len(lines)) // 4) for _ in lines)
    assert sum(report["inputs"].values()) == n + strange, report["inputs"]
    assert len(report["refused"]) == (broken // len(lines)) * len(lines) - strange, len(report["refused"])
    figures = {
        "records": n,
        "broken": broken,
        "refused": len(report["refused"]),
        "missing": 0,
        "dead": 0,
        "pipeline_records_per_second": report["records_per_second"],
        "first_result_seconds": report["first_result_seconds"],
        "peak_memory_gb": round(report["peak_memory_bytes"] / 1e9, 2),
    }
    if not broken:
        few = {t: ls[:: max(1, len(ls) // 60)] for t, ls in lines.items()}
        alone = n / run_models(lines, 64)
        single = sum(map(len, few.values())) / run_models(few, 1)
        grown = growth(lines)
        figures |= {
            "models_alone_records_per_second": round(alone, 2),
            "one_at_a_time_records_per_second": round(single, 2),
            "pipeline_to_models_alone": round(report["records_per_second"] / alone, 3),
            "pipeline_to_one_at_a_time": round(report["records_per_second"] / single, 3),
            "growth_mean": round(statistics.mean(grown), 1),
            "growth_max": round(max(grown), 1),
        }
    row = {**figures, **described("pipeline"), "releases": report["releases"]}
    print(json.dumps(row, indent=2))
    if result is not None:
        result.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
