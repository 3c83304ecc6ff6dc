"""Is anything of a live source lost when its server fails and when its process is killed, and is everything
removed that was deleted?

Local servers simulate the protocols, with a Kafka that the benchmark starts. In the first parts each makes
random faults: it cuts the connection, also in the middle of a message, sends invalid data, 2 MB posts, wrong
times, the same post twice or in another order, sends nothing, or answers 429 and 503. A file is replaced,
too, and has incomplete lines. In the last part a process with five sources is killed repeatedly.

At the end the input topic must have the last version of each post, a tombstone for each deletion, and no
other key. Then all stages, with stub models, and the store work it off: the last record of a deleted post on
`events` must be a tombstone, and nothing of it may be in the tables of the store, nor its text in the file.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.sources.behind import ERRORS
from benchmarks.sources.faults import PROTOCOLS, fault_run
from benchmarks.sources.kills import kill_run
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import own_kafka
from training.common.program_help import run_program

KILLED = "all five, killed"
PARTS = (*PROTOCOLS, KILLED)


def measured(part: str, faults: int, kills: int, seed: int) -> dict[str, Any]:
    """The figures of one part, with the commit that they were measured at. An embedded broker would drop what
    is above some MB before the end.
    """
    with own_kafka() as kafka:
        processes.create_topics(Settings(broker=f"kafka://{kafka.bootstrap}"))
        if part == KILLED:
            run = kill_run(kills, seed, kafka.bootstrap)
        else:
            run = fault_run(part, faults, seed, kafka.bootstrap)
        return asyncio.run(run) | {"commit": provenance("sources")["commit"]}


def main(
    parts: Annotated[
        list[str] | None, typer.Argument(help=f"parts to run: {', '.join(PARTS)}; by default all")
    ] = None,
    faults: Annotated[int, typer.Option(help="faults of each protocol")] = 1000,
    kills: Annotated[int, typer.Option(help="kills of the process")] = 20,
    seed: Annotated[int, typer.Option(help="seed of the posts and the faults")] = 7,
    json: Annotated[
        Path | None,
        typer.Option(help="write the figures here after each part; other parts in the file are kept"),
    ] = None,
) -> None:
    rows: dict[str, dict[str, Any]] = {}
    for part in parts or PARTS:
        rows[part] = measured(part, faults, kills, seed)
        typer.echo(f"{part}: {rows[part]}", err=True)
        # Read now: another part may have been measured at the same time.
        earlier = orjson.loads(json.read_bytes())["rows"] if json is not None and json.exists() else {}
        found = earlier | rows
        ordered = {name: found[name] for name in PARTS if name in found}
        errors = {name: sum(row[name] for row in ordered.values()) for name in ERRORS}
        print_and_write(errors | provenance("sources") | {"rows": ordered}, json)
    raise typer.Exit(1 if any(row[name] for row in rows.values() for name in ERRORS) else 0)


if __name__ == "__main__":
    run_program(main)
