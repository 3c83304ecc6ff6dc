"""pvstream processes that are forked from one that has everything imported, which saves each of them the
seconds that importing torch and transformers takes.

A forked process has its own pid, memory, environment and exit code. What it shares with the others is the
seed of string hashes, so at least one process of a test that compares answers of several should be a new one.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from subprocess import TimeoutExpired

#: Importing these starts no thread.
PRELOADED = [
    __name__,
    "streams.__main__",
    "streams.cli.topic_output",
    "streams.agents.pipeline",
    "streams.worker",
    "streams.cli.demo.console",
    "streams.store.duckdb_file",
    "streams.web.app",
    "confluent_kafka.admin",
    "faust.assignor.partition_assignor",
    "faust.fixups.django",
    "faust.tables.globaltable",
    "faust.transport.drivers.aiokafka",
    "faust.worker",
    *(f"models.{task}.model" for task in ("ner", "acronym", "relation", "normalization", "summarization")),
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
]


class ForkedProcess:
    """`pvstream ARGUMENTS` with an environment, its output appended to a file; used as a subprocess.Popen.

    `before` is called in the process first: it may break something.
    """

    def __init__(
        self,
        arguments: tuple[str, ...],
        env: dict[str, str],
        out: Path,
        err: Path,
        before: Callable[[], None] | None = None,
    ) -> None:
        self._process = _context().Process(
            target=_run, args=(arguments, env, str(out), str(err), before), name=" ".join(arguments)
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """The exit code; raises TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutExpired(self._process.name, timeout)
        return self._process.exitcode

    def send_signal(self, which: Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, which)

    def terminate(self) -> None:
        self.send_signal(SIGTERM)

    def kill(self) -> None:
        self.send_signal(SIGKILL)


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # without effect once the server runs
    return context


def _run(
    arguments: tuple[str, ...], env: dict[str, str], out: str, err: str, before: Callable[[], None] | None
) -> None:
    from streams.__main__ import main  # noqa: PLC0415  not needed by whoever forks

    os.environ.clear()
    os.environ.update(env)
    for path, descriptor in ((out, 1), (err, 2)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
    sys.argv = ["pvstream", *arguments]
    try:
        if before is not None:
            before()
        main()
    finally:
        atexit._run_exitfuncs()  # multiprocessing ends a process without them
