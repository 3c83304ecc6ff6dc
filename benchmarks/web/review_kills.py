"""Does a decision of a reviewer get lost or doubled when `pvstream web` is killed while it writes?

A client decides one event after the other on a page over an embedded broker; the process is killed at random
moments and started again. The chain of decisions is compared with the answers that the client received.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.machine import print_and_write, provenance
from streams.broker.embedded import EmbeddedBroker
from tests.integration import processes
from tests.integration.store.review_kills import review_and_kill
from tests.streams.web.conftest import fill, reports
from training.common.program_help import run_program

EVENTS_BETWEEN = 200
DEFINITIONS = {
    "confirmed": "decisions that the page has answered",
    "cut_off": "decisions that a kill left without an answer; they may be in the chain",
    "in_chain": "decisions of the chain, which must be whole and not shorter than the kept head",
    "lost": "confirmed decisions that the chain lacks",
    "doubled": "decisions on an event that has one already",
}


def main(
    kills: Annotated[int, typer.Option(min=1, help="number of kills")] = 20,
    seed: Annotated[int, typer.Option(help="seed of the moments of the kills")] = 0,
    json: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="pvstream-kills-") as name, EmbeddedBroker() as broker:
        folder = Path(name)
        fill(folder / "events.duckdb", reports(EVENTS_BETWEEN * kills))
        env = processes.environment(
            broker.bootstrap, processes.free_port(), PV_STORE=str(folder / "store"),
            PV_WEB_PORT=str(processes.free_port()),
        )  # fmt: skip
        found = asyncio.run(review_and_kill(env, folder / "log", kills, random.Random(seed)))
    figures = {
        "kills": kills, "seed": seed, "confirmed": len(found.acknowledged), "cut_off": found.unanswered,
        "in_chain": found.decided.total(), "lost": found.lost, "doubled": found.doubled,
        "definitions": DEFINITIONS,
    }  # fmt: skip
    print_and_write(figures | provenance("web.review_kills"), json)


if __name__ == "__main__":
    run_program(main)
