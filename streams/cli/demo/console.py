"""What the command demo prints: a progress bar, the results, and the figures of the run."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from streams.cli.demo.run import Demo, Outcome
from streams.cli.display import legend, render
from streams.cli.feed import Arrival, Tally
from streams.cli.refusals import REFUSALS_SHOWN, counted
from streams.cli.terminal import Table, say
from streams.stopping import at_signals


async def run_demo(console: Console, demo: Demo, *, show: int, keep: bool) -> Outcome:
    """Runs a demo; prints up to `show` results of each final topic, and the figures at the end.

    With `keep`, the pipeline then keeps running until the process is interrupted.
    """
    demo.open_files()
    with _LiveDisplay(console, show) as display:

        async def wait_for_interrupt(addresses: str) -> None:
            display.stop()
            _print_outcome(console, demo.outcome)
            console.print(f"still running until Ctrl-C: {addresses}")
            stop = asyncio.Event()
            at_signals(stop.set)
            await stop.wait()

        outcome = await demo.run(
            on_status=display.set_status,
            on_arrival=display.add_arrival,
            before_drain=wait_for_interrupt if keep else None,
        )
    if not keep:
        _print_outcome(console, outcome)
    return outcome


class _LiveDisplay:
    """The progress bar of a running demo and, above it, the results; a context manager."""

    def __init__(self, console: Console, show: int) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._console = console
        self._show = show
        self._shown: Counter[str] = Counter()
        self._progress = Progress(*columns, console=console, transient=True)
        self._bar = self._progress.add_task("starting", total=None)

    def __enter__(self) -> _LiveDisplay:
        self._progress.start()
        if self._show:
            self._console.print(legend())
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._progress.stop()

    def set_status(self, text: str) -> None:
        self._progress.update(self._bar, description=text)

    def add_arrival(self, arrival: Arrival, tally: Tally) -> None:
        total = sum(tally.inputs.values())
        done = total - len(tally.missing)
        self._progress.update(self._bar, description="records", total=total, completed=done)
        if arrival.record is not None and arrival.topic in ("events", "summaries"):
            self._shown[arrival.topic] += 1
            if self._shown[arrival.topic] <= self._show:
                self._progress.console.print(render(arrival.source, arrival.record))


def _print_outcome(console: Console, outcome: Outcome) -> None:
    figures = outcome.as_dict()
    console.print(_topic_table(figures))
    for refusal in figures["refused"][:REFUSALS_SHOWN]:
        place = f"line {refusal['line']}" if "line" in refusal else refusal["id"]
        text = f"{refusal['topic']}, {place} refused: {refusal['reason']}"
        say(text, console)
    if len(figures["refused"]) > REFUSALS_SHOWN:
        for line in counted((refusal["topic"], refusal["reason"]) for refusal in figures["refused"]):
            say(line, console)
    for note in outcome.notes:
        say(note, console)
    releases = ", ".join(f"{task} {version}" for task, version in figures["releases"].items())
    say(f"releases: {releases}", console)
    n = {name: len(figures[name]) for name in ("missing", "duplicated", "dead")}
    rate, first = figures["records_per_second"], figures["first_result_seconds"]
    say(
        f"{sum(figures['inputs'].values())} records in {figures['seconds']:.1f} s = {rate:.1f} per second; "
        f"first result {first} s after the start; "
        f"missing {n['missing']}, duplicated {n['duplicated']}, dead letters {n['dead']}; "
        f"peak memory {figures['peak_memory_bytes'] / 1e9:.2f} GB",
        console,
    )


def _topic_table(figures: dict[str, Any]) -> Table:
    """Records in and out, and dead letters, of each topic."""
    table = Table("topic", "in", "out", "dead letters")
    dead = Counter(d["topic"].removesuffix(".dead") for d in figures["dead"])
    for name in dict.fromkeys([*figures["inputs"], *figures["outputs"], *dead]):
        cells = (figures["inputs"].get(name, ""), figures["outputs"].get(name, ""), dead.get(name, 0))
        table.add_row(name, *(str(c) for c in cells))
    return table
