"""How fast is the whole pipeline, compared with its models alone, in batches and one record at a time?

All three process the same records, one after the other on the same machine; their ratios are the result. With
--broken, invalid lines are mixed in, and the run fails unless each of them is refused and every valid one
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

from benchmarks.machine import print_and_write, provenance
from streams.agents import acronym, ner, normalization, relation, summarization
from streams.agents.pipeline import STAGES
from streams.cli.demo.run import samples
from streams.codec import decode, encode
from streams.records import Report
from streams.releases.handle import load_task
from streams.settings import Settings

#: Lines that are not valid reports.
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
#: Unusual texts of valid reports.
STRANGE = ["😀🤮💊", "zoloft\u0000 gave me hives", "\u202ezoloft"]


def inputs(data: Path, limits: dict[str, int]) -> dict[str, list[bytes]]:
    """The first lines of each stream; of the bundled samples if there is no data."""
    folder = data / "streams"
    files = {t: folder / f"{t}.jsonl" for t in limits} if folder.is_dir() else samples()
    return {t: files[t].read_bytes().splitlines()[: limits[t]] for t in limits}


def run_pipeline(lines: dict[str, list[bytes]], broken: int, seed: int) -> dict[str, Any]:
    """The report of `pvstream demo`, in a process of its own, on these lines and `broken` others."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for topic, valid in lines.items():
            mixed = [*valid, *other_lines(broken // len(lines))]
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


def other_lines(n: int) -> list[bytes]:
    """Lines of which every fourth, from the first, is a valid report with an unusual text."""
    unusual = [
        json.dumps({"id": f"strange-{i}", "text": STRANGE[i % len(STRANGE)]}).encode() for i in range(n)
    ]
    return [unusual[i] if i % 4 == 0 else BROKEN[i % len(BROKEN)] for i in range(n)]


def run_models(lines: dict[str, list[bytes]], batch: int) -> float:
    """Seconds that the same five models take for the same records in this process, without a broker."""
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
    """Size of each report in all topics together over its size on arrival, for the first n of each stream."""
    models = {s.name: load_task(s.name, Settings()).current.model for s in STAGES}
    paths: dict[str, list[tuple[Any, str]]] = {
        "posts": [(ner.predict, "ner"), (normalization.predict, "normalization")],
        "sentences": [
            (acronym.predict, "acronym"),
            (relation.predict, "relation"),
            (normalization.predict, "normalization"),
        ],
    }
    factors = []
    for topic, stages in paths.items():
        records: Sequence[Any] = [decode(Report, line) for line in lines[topic][:n]]
        on_arrival = [len(encode(r)) for r in records]
        total = list(on_arrival)
        for predict, task in stages:
            records = predict(models[task], records)
            total = [t + len(encode(r)) for t, r in zip(total, records, strict=True)]
        factors += [t / a for t, a in zip(total, on_arrival, strict=True)]
    return factors


def chunks(items: Sequence[Report], size: int) -> list[Sequence[Report]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def check(report: dict[str, Any], lines: dict[str, list[bytes]], broken: int) -> None:
    """Raises AssertionError unless every valid line came out, once, and every other line was refused."""
    assert report["missing"] == [] and report["duplicated"] == [] and report["dead"] == [], report
    unusual = sum(-(-(broken // len(lines)) // 4) for _ in lines)
    assert sum(report["inputs"].values()) == sum(map(len, lines.values())) + unusual, report["inputs"]
    refused = len(report["refused"])
    assert refused == (broken // len(lines)) * len(lines) - unusual, refused


def model_figures(lines: dict[str, list[bytes]], pipeline_rate: float) -> dict[str, Any]:
    """Speeds of the models alone, the ratios of the pipeline's speed to them, and the growth of reports."""
    few = {t: ls[:: max(1, len(ls) // 60)] for t, ls in lines.items()}
    alone = sum(map(len, lines.values())) / run_models(lines, 64)
    single = sum(map(len, few.values())) / run_models(few, 1)
    factors = growth(lines)
    return {
        "models_alone_records_per_second": round(alone, 2),
        "one_at_a_time_records_per_second": round(single, 2),
        "pipeline_to_models_alone": round(pipeline_rate / alone, 3),
        "pipeline_to_one_at_a_time": round(pipeline_rate / single, 3),
        "growth_mean": round(statistics.mean(factors), 1),
        "growth_max": round(max(factors), 1),
    }


def main(
    data: Annotated[
        Path, typer.Option(help="folder with streams/; if there is none, the bundled samples are used")
    ] = Path("data"),
    posts: int = 891,
    sentences: int = 1000,
    questions: int = 200,
    broken: Annotated[int, typer.Option(help="number of invalid and unusual lines that are mixed in")] = 0,
    seed: int = 7,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    lines = inputs(data, {"posts": posts, "sentences": sentences, "questions": questions})
    n = sum(map(len, lines.values()))
    report = run_pipeline(lines, broken, seed)
    check(report, lines, broken)
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
        figures |= model_figures(lines, report["records_per_second"])
    print_and_write({**figures, **provenance("pipeline"), "releases": report["releases"]}, result)


if __name__ == "__main__":
    typer.run(main)
