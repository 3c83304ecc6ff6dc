"""What somebody meets first: help, completion, wrong arguments, output into files, empty answers."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from typer.main import get_command

from streams.__main__ import app
from streams.broker.embedded import EmbeddedBroker
from streams.cli import groups, terminal
from streams.cli.terminal import read_settings
from streams.store.open_database import open_database
from tests.streams.cli.command_line import CommandLine


def _commands(group: Any, *names: str) -> list[tuple[tuple[str, ...], Any]]:
    found = []
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found += _commands(command, *names, name)
        else:
            found.append(((*names, name), command))
    return found


COMMANDS = _commands(get_command(app))


@pytest.mark.parametrize(("names", "command"), COMMANDS, ids=lambda value: str(value)[:40])
def test_every_command_has_an_example_with_options_that_exist(names: tuple[str, ...], command: Any) -> None:
    words = shlex.split(command.epilog.removeprefix("Example: "))
    assert words[: len(names) + 1] == ["pvstream", *names]
    options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= options


def test_every_command_of_the_help_is_in_a_group() -> None:
    panels = {groups.RUN, groups.DATA, groups.MODELS, groups.OPERATE, groups.RESULTS}
    assert {c.rich_help_panel for c in get_command(app).commands.values()} == panels  # type: ignore[attr-defined]


def test_the_shell_completes_commands() -> None:
    program = "import sys; sys.argv = ['pvstream']; from streams.__main__ import main; main()"
    asked = {"_PVSTREAM_COMPLETE": "complete_bash", "COMP_WORDS": "pvstream rel", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["releases"]


def test_a_table_in_a_file_keeps_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    file = io.StringIO()
    table = Table("mention")
    table.add_row("x" * 300)
    terminal._Console(file=file).print(table)
    assert "x" * 300 in file.getvalue()
    assert max(map(len, file.getvalue().splitlines())) < 320


def test_a_deletion_is_an_object_with_its_key(pvstream: CommandLine) -> None:
    with EmbeddedBroker() as broker:
        pvstream.set("PV_BROKER", f"kafka://{broker.bootstrap}")
        assert pvstream("topics", "--create").code == 0
        assert pvstream("forget", "post-1").code == 0
        answer = pvstream("tail", "posts", "--until-end", "--json")
    assert (answer.code, answer.out) == (0, '{"key":"post-1","value":null}\n')


@pytest.mark.parametrize("arguments", ["dead", "dead posts.dead", "redrive posts.dead"])
def test_dead_letters_of_an_embedded_broker_are_counted(arguments: str, pvstream: CommandLine) -> None:
    with EmbeddedBroker() as broker:
        pvstream.set("PV_BROKER", f"kafka://{broker.bootstrap}")
        assert pvstream("topics", "--create").code == 0
        answer = pvstream(*arguments.split())
    assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    ["reviews export", "reviews export --examples", "cases export", "cases export --undecided --sort"],
)
def test_an_empty_export_says_so(arguments: str, pvstream: CommandLine, tmp_path: Path) -> None:
    pvstream.set("PV_DATABASE", str(tmp_path / "pv.duckdb"))
    open_database(read_settings(), write=True).close()
    answer = pvstream(*arguments.split())
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("nothing to export: no report has ")


def test_a_demo_with_every_line_refused_fails_in_one_line(tmp_path: Path, pvstream: CommandLine) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text('{"id": "a", "text": ""}\n{"id": "b", "text": ""}\n')
    answer = pvstream("demo", "--input", f"posts={path}")
    assert answer.code == 1
    assert answer.error_line == "error: nothing was sent: all 2 lines were refused"
