"""A worker whose inference waits where a test wants it to, so that it can be suspended there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGCONT
from typing import Any

from tests.integration.fork_server import ForkedProcess

#: The folder by which a test and its worker speak to each other.
FOLDER = "HELD_FOLDER"
#: A text with this word is held.
HOLD = "hold-the-batch"
HOLD_SECONDS = 120.0


@contextmanager
def held_worker(stage: str, env: dict[str, str], log: Path, folder: Path) -> Iterator[ForkedProcess]:
    """The worker of a stage. It writes the file `held` when it is about to predict a text with the word HOLD,
    and waits until the file `go` is there; with the file `unfenced` it sends whatever it has lost.
    """
    folder.mkdir()
    process = ForkedProcess(("worker", "--stage", stage), env | {FOLDER: str(folder)}, log, log, prepare)
    try:
        yield process
    finally:
        process.send_signal(SIGCONT)
        process.kill()
        process.wait(30)


def prepare() -> None:
    """Changes the stages of this process."""
    from streams import stage  # noqa: PLC0415  not needed by the test
    from streams.app import ports  # noqa: PLC0415

    folder = Path(os.environ[FOLDER])
    predict, owns = stage._predict_batch, ports.FaustPorts.owns

    def held(stage: Any, loaded: Any, reports: Sequence[Any]) -> Sequence[Any]:
        deadline = time.monotonic() + HOLD_SECONDS
        if any(HOLD in r.text for r in reports):
            (folder / "held").touch()
            while not (folder / "go").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        return predict(stage, loaded, reports)

    async def fenced(self: ports.FaustPorts, batch: Sequence[Any]) -> bool:
        return (folder / "unfenced").exists() or await owns(self, batch)

    stage._predict_batch = held
    ports.FaustPorts.owns = fenced  # type: ignore[method-assign]
