"""How many records a second do the stages and the whole pipeline process, and how long does a record take?

On a busy machine compare the processor seconds. With `--json` every part writes a file into that folder.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.machine import provenance
from benchmarks.speed import brokers
from benchmarks.speed.against import against, landed
from benchmarks.speed.scaling import QUICK_SHARE, RECORDS, scaling
from benchmarks.speed.setup import FULL, QUICK, Setup, inputs
from benchmarks.speed.stages import stages
from streams.inference_threads import processors
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import KafkaUnavailable, own_kafka
from training.common.program_help import run_program


class Run:
    """Resources of the parts, created on first use."""

    def __init__(self, data: Path, quick: bool, stack: ExitStack) -> None:
        self._data, self._stack = data, stack
        self.amount = QUICK if quick else FULL

    @cached_property
    def setup(self) -> Setup:
        return Setup(self._data, self.amount)

    @cached_property
    def kafka(self) -> str:
        """Addresses of a Kafka with all topics; raises KafkaUnavailable."""
        server = self._stack.enter_context(own_kafka())
        settings = Settings(broker=f"kafka://{server.bootstrap}")
        most = max(settings.partitions, processors())  # one for each process
        processes.create_topics(settings.model_copy(update={"partitions": most}))
        return server.bootstrap

    @property
    def kafka_if_any(self) -> str | None:
        try:
            return self.kafka
        except KafkaUnavailable:
            return None

    def throughput(self) -> dict[str, Any]:
        return brokers.throughput(self.setup, self.kafka_if_any)

    def scaling(self) -> dict[str, Any]:
        quick = self.amount is not FULL
        share = QUICK_SHARE if quick else 1
        read = inputs(self._data, {topic: n // share for topic, n in RECORDS.items()})
        return scaling(read, self.kafka_if_any, quick)

    def latency(self) -> dict[str, Any]:
        kafka = self.kafka  # before the models, which take longer
        return brokers.latency(self.setup, kafka)


PARTS: dict[str, Callable[[Run], dict[str, Any]]] = {
    "stages": lambda run: stages(run.setup),
    "brokers": Run.throughput,
    "latency": Run.latency,
    "scaling": Run.scaling,
}
#: What is measured where no part is named: in some minutes.
USUAL = ("stages", "brokers", "latency")


def measured(names: list[str], data: Path, quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """The figures of each part; if it needs a Kafka and there is none, the reason why it is left out."""
    with ExitStack() as stack:
        run = Run(data, quick, stack)
        for name in names:
            started = time.perf_counter()
            try:
                figures = PARTS[name](run)
            except KafkaUnavailable as error:
                figures = {"left_out": str(error)}
            taken = {"seconds": round(time.perf_counter() - started, 1)}
            yield name, figures | taken | {"load_average": round(os.getloadavg()[0], 1)}


def table(name: str, figures: dict[str, Any]) -> Table:
    rows = figures.get("rows", {})
    shown = Table(
        title=name, caption=", ".join(f"{k}: {v}" for k, v in figures.items() if k not in {"rows", "what"})
    )
    columns: list[str] = list(next(iter(rows.values()), {}))
    for column in ("", *columns):
        shown.add_column(column.replace("_", " "))
    for key, row in rows.items():
        shown.add_row(key, *("" if row[column] is None else str(row[column]) for column in columns))
    return shown


def main(
    data: Annotated[
        Path, typer.Option(help="folder with streams/; if there is none, the bundled samples are used")
    ] = Path("data"),
    parts: Annotated[
        str, typer.Option(help=f"parts to run, separated by commas, of {', '.join(PARTS)}")
    ] = ",".join(USUAL),
    quick: Annotated[
        bool, typer.Option(help="few records and one round, to test that every part runs")
    ] = False,
    result: Annotated[
        Path | None, typer.Option("--json", help="folder in which each part writes a file of figures")
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option("--against", help="also compare with a commit, or with the `landed` results' one"),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0, help="when the last turn of --against ends")] = 10.0,
) -> None:
    started = time.monotonic()
    names = set(parts.split(","))
    if unknown := names - PARTS.keys():
        raise typer.BadParameter(f"unknown parts {sorted(unknown)}; there are {', '.join(PARTS)}")
    if result is not None:
        result.mkdir(parents=True, exist_ok=True)
    for name, figures in measured([name for name in PARTS if name in names], data, quick):
        Console().print(table(name, figures))
        if result is not None and "left_out" not in figures:
            rows = figures.pop("rows")
            content = figures | provenance("speed") | {"rows": rows}
            (result / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    if commit is not None:
        options = ["--data", str(data.absolute()), *(["--quick"] if quick else [])]
        left = minutes - (time.monotonic() - started) / 60
        then = landed() if commit == "landed" else commit
        Console().print(table("ratios to that commit", against(then, options, left)))


if __name__ == "__main__":
    run_program(main)
