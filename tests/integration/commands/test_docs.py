"""Every command of the documentation that needs a broker works, in the order of the pages.

tests/docs/test_commands.py runs the commands that need none, and checks that all exist.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.docs.documents import ALONE, Command, commands
from tests.docs.workspace import Workspace
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.streams.cli.command_line import CommandLine

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

#: Commands that run until they are stopped. They start while the next commands run, and serve these.
LASTING = frozenset({"up", "worker"})
#: What a command gets in addition, so that it ends or is quick.
MORE: dict[str, tuple[str, ...]] = {"demo": ("--limit", "1")}


def is_run_here(command: Command) -> bool:
    return command.words[0] == "pvstream" and command.not_run is None and command.words[1] not in ALONE


class Site:
    """A broker, a workspace, and the processes that were started."""

    def __init__(self, kafka: LocalKafka, workspace: Workspace, stack: ExitStack) -> None:
        self.kafka = kafka
        self.workspace = workspace
        self.ports: list[int] = [processes.free_port()]
        self._stack = stack
        self._started: list[processes.Running] = []

    def environment(self, port: int) -> dict[str, str]:
        store = self.workspace.folder / "store"
        return processes.environment(self.kafka.bootstrap, port, PV_STORE=str(store))

    def start(self, arguments: Sequence[str]) -> None:
        """Starts a command that lasts."""
        if self._started:
            self.ports.append(processes.free_port())
        else:
            processes.produce(self.kafka.bootstrap, "posts", [(b"broken", b"{")])
        log = self.workspace.folder / f"{arguments[0]}.log"
        running = processes.running(*arguments, env=self.environment(self.ports[-1]), log=log, forked=True)
        self._started.append(self._stack.enter_context(running))

    def stop(self) -> None:
        """Waits until all that was started is ready, and stops it; fails where it does not end well."""
        for port in self.ports:
            processes.wait_until(partial(processes.is_ready, port), f"ready on port {port}")
        for process in self._started:
            process.terminate()
        assert [process.wait(60) for process in self._started] == [0] * len(self._started)

    def arguments(self, command: Command) -> list[str]:
        """What is run, once it can be: `tail` would wait for ever for records that do not come."""
        words = self.workspace.words(command, worker=f"127.0.0.1:{self.ports[0]}")[1:]
        if words[0] != "tail":
            return [*words, *MORE.get(words[0], ())]
        if "--count" not in words:
            words += ["--count", "1"]
        self._wait_for(words[1], int(words[words.index("--count") + 1]))
        return words

    def _wait_for(self, topic: str, records: int) -> None:
        bootstrap = self.kafka.bootstrap
        processes.wait_until(
            lambda: processes.count(bootstrap, topic) >= records, f"{records} records in {topic}", 300
        )


def test_every_command_of_the_documentation_that_needs_a_broker_works(
    kafka: LocalKafka,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pvstream = CommandLine(monkeypatch, capsys)
    failed, seconds = [], {}
    with ExitStack() as stack:
        site = Site(kafka, Workspace(tmp_path, data), stack)
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
        site.stop()
    print("\n".join(f"{took:5.1f} s  {command}" for command, took in seconds.items()))
    assert failed == []
