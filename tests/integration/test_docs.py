"""Every command of the documentation that needs a broker works, in the order of the pages.

tests/docs/test_commands.py runs the commands that need none, and checks that all exist.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.documents import Command, commands
from tests.docs.test_commands import ALONE
from tests.docs.workspace import Workspace
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.streams.command_line import CommandLine

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

#: Commands that run until they are stopped: the first one serves the others until the end of the test.
LASTING = frozenset({"up", "worker"})
#: What a command gets in addition, so that it ends or is quick.
MORE: dict[str, tuple[str, ...]] = {"demo": ("--limit", "4")}


def is_run_here(command: Command) -> bool:
    return command.words[0] == "pvstream" and command.not_run is None and command.words[1] not in ALONE


class Site:
    """A broker, a workspace, and `pvstream up` as the documentation starts it."""

    def __init__(self, kafka: LocalKafka, workspace: Workspace, stack: ExitStack) -> None:
        self.kafka = kafka
        self.workspace = workspace
        self.port = processes.free_port()
        self._stack = stack
        self._serving = False

    def environment(self, port: int) -> dict[str, str]:
        store = self.workspace.folder / "store"
        return processes.environment(self.kafka.bootstrap, port, PV_STORE=str(store))

    def start(self, arguments: Sequence[str]) -> None:
        """Starts a command that lasts and waits until it is ready; all but the first are stopped again."""
        port = processes.free_port() if self._serving else self.port
        log = self.workspace.folder / f"{arguments[0]}.log"
        process = self._stack.enter_context(
            processes.running(*arguments, env=self.environment(port), log=log)
        )
        processes.wait_until(lambda: processes.is_ready(port), f"{arguments} is ready")
        if self._serving:
            process.terminate()
            assert process.wait(60) == 0, log.read_text(encoding="utf-8")
            return
        self._serving = True
        processes.produce(self.kafka.bootstrap, "posts", [(b"broken", b"{")])

    def arguments(self, command: Command) -> list[str]:
        words = self.workspace.words(command, worker=f"127.0.0.1:{self.port}")[1:]
        more = MORE.get(words[0], ())
        if words[0] == "tail" and "--count" not in words:
            more = ("--count", "1")
        return [*words, *more]


def test_every_command_of_the_documentation_that_needs_a_broker_works(
    own_kafka: LocalKafka,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pvstream = CommandLine(monkeypatch, capsys)
    failed, seconds = [], {}
    with ExitStack() as stack:
        site = Site(own_kafka, Workspace(tmp_path, data), stack)
        for command in (c for c in commands() if is_run_here(c)):
            started = time.monotonic()
            arguments = site.arguments(command)
            if arguments[0] in LASTING:
                site.start(arguments)
            else:
                with pytest.MonkeyPatch.context() as patch:
                    own = site.environment(0) | site.workspace.variables(command)
                    for name in (name for name in own if name.startswith("PV_")):
                        patch.setenv(name, own[name])
                    answer = pvstream(*arguments)
                if answer.code:
                    failed.append(f"{command}\n{answer.out}{answer.err}")
            seconds[str(command)] = time.monotonic() - started
    print("\n".join(f"{took:5.1f} s  {command}" for command, took in seconds.items()))
    assert failed == []
