"""What `pvstream status` prints."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from streams.cli.terminal import Table, print_json, say
from streams.monitoring.status import Member, StageStatus, State, Status
from streams.monitoring.workers import WorkerStatus

_STYLES: dict[State, str] = {"ok": "green", "rebalancing": "yellow", "stalled": "red", "no worker": "red"}


def print_status(console: Console, status: Status, *, json: bool) -> None:
    if json:
        print_json(asdict(status), console)
        return
    stages = Table("stage", "state", "workers", "lag", "oldest", "release")
    for stage in status.stages:
        workers = "\n".join(_member(member) for member in stage.members) or "none"
        state = Text(stage.state, _STYLES[stage.state])
        stages.add_row(stage.stage, state, workers, str(stage.lag_records), _age(stage), _release(stage))
    console.print(stages)
    waiting = {topic: n for topic, n in status.dead_letters.items() if n}
    letters = ", ".join(f"{topic} {n}" for topic, n in waiting.items()) or "none"
    say(f"dead letters that were not sent back: {letters}", console)
    if status.workers:
        console.print(_workers(status.workers))
    for problem in status.problems:
        console.print(Text(problem, "red"), soft_wrap=True)


def _member(member: Member) -> str:
    partitions = ", ".join(map(str, member.partitions)) or "no partitions"
    return f"{member.host}: {partitions}"


def _age(stage: StageStatus) -> str:
    return "?" if stage.lag_seconds is None else f"{stage.lag_seconds:.0f} s"


def _release(stage: StageStatus) -> str:
    return f"{stage.release}{'' if stage.announced else ' (bundled)'}"


def _workers(workers: list[WorkerStatus]) -> Table:
    table = Table("worker", "ready", "runs", "refused")
    for worker in workers:
        ready = ", ".join(f"{stage} {'yes' if yes else 'no'}" for stage, yes in worker.ready.items())
        runs = "\n".join(f"{task} {version}" for task, version in worker.releases.items())
        refused = "\n".join(f"{task} {version}" for task, version in worker.refused.items())
        cells = (worker.address, "no answer" if worker.error else ready, runs, refused)
        table.add_row(*(Text(cell) for cell in cells))
    return table
